package history

import (
	"slices"
	"sort"
	"time"
)

// minPiece is how many steps a piece has at least, so that small ones do not cost more than they save.
const minPiece = 128

// cut divides the steps of one key, in the order of their calls, into pieces that can be judged one by one: the whole
// has an explanation if and only if each piece has.
//
// A piece may begin with a write that succeeds whatever it meets, and during which no other operation of known outcome
// was under way. All those before returned before it was called, and it returned before those after were called. So in
// any explanation of the whole it stands between them, what it leaves does not depend on what was before, and the
// explanations of two pieces make one of both. Operations of unknown outcome have no place of their own: each goes to
// the piece in which its effect was first seen, since it must stand after that piece's first write (which would have
// replaced it) and before the one who saw it.
func cut(steps []step) [][]step {
	var pieces [][]step
	var starts []time.Duration
	answered := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !s.known() })
	latest, begin := time.Duration(-1), 0
	for i, s := range answered {
		alone := s.op.Call > latest && (i+1 == len(answered) || answered[i+1].op.Call > s.ret)
		if alone && s.need == anything && s.value != "" && i-begin >= minPiece {
			pieces = append(pieces, answered[begin:i:i])
			starts = append(starts, s.op.Call)
			begin = i
		}
		latest = max(latest, s.ret)
	}
	pieces = append(pieces, answered[begin:])
	for _, s := range steps {
		if !s.known() {
			n := sort.Search(len(starts), func(i int) bool { return starts[i] > s.ret })
			pieces[n] = append(pieces[n], s)
		}
	}
	return pieces
}
