package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// MaxClients is how many connections one history may have.
const MaxClients = 40

// register is the state of the model. All but the value follows from which steps were taken, so it adds no states; it
// is there to leave a wrong way early.
type register struct {
	value   string // empty for none
	readers int32  // steps to come that need the value: it must not be replaced before, as nobody else writes it
	taken   [MaxClients]uint16
}

// input is a step with what the rest of its piece says of it.
type input struct {
	*step
	turn    uint16 // place among the steps of its client, which keep their order; 0 is anywhere
	readers int32  // steps that need what it puts
}

// anyValue is the value of a register of which nothing is known.
const anyValue = "any value"

// model is the sequential specification of one key that begins with the given value.
func model(start string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{value: start} },
		Step: func(state, in, _ any) (bool, any) {
			r := state.(register)
			ok := r.take(in.(*input))
			return ok, r
		},
		DescribeOperation: func(in, _ any) string { return in.(*input).op.action() },
		DescribeState: func(state any) string {
			if value := state.(register).value; value != "" {
				return value
			}
			return "none"
		},
	}
}

// take changes the register as the step does, and tells whether the step could be taken.
func (r *register) take(s *input) bool {
	if s.turn != 0 {
		if s.turn != r.taken[s.op.Client]+1 {
			return false
		}
		r.taken[s.op.Client] = s.turn
	}
	if r.value != anyValue && !s.meets(r.value) {
		return false
	}
	if s.need == exactly {
		r.value, r.readers = s.want, max(0, r.readers-1)
	}
	if s.puts && r.readers > 0 {
		return false
	}
	if s.puts {
		r.value, r.readers = s.value, s.readers
	}
	return true
}

// operations are the steps of a piece as Porcupine wants them.
func operations(steps []step) []porcupine.Operation {
	var turns [MaxClients]uint16
	readers := readers(steps)
	ops := make([]porcupine.Operation, len(steps))
	for i := range steps {
		s := &steps[i]
		in := &input{step: s, readers: readers[s.value]}
		if s.known() {
			turns[s.op.Client]++
			in.turn = turns[s.op.Client]
		}
		ops[i] = porcupine.Operation{
			ClientId: s.op.Client,
			Input:    in,
			Call:     int64(s.call),
			Return:   int64(s.ret),
		}
	}
	return ops
}

// readers returns how many steps need each value that only one writes; it has none for others, which may come again.
func readers(steps []step) map[string]int32 {
	needed, written := make(map[string]int32), make(map[string]int)
	for _, s := range steps {
		if s.need == exactly {
			needed[s.want]++
		}
		if s.puts {
			written[s.value]++
		}
	}
	for value, writers := range written {
		if writers > 1 || value == "" {
			delete(needed, value)
		}
	}
	return needed
}

// judge tells whether a piece has an explanation that begins with the given value, unless that takes longer than limit.
func judge(piece []step, start string, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(start), operations(piece), limit)
}

// picture writes Porcupine's visualization of a piece to an HTML file.
func picture(piece []step, path string) error {
	m := model(start(piece))
	_, info := porcupine.CheckOperationsVerbose(m, operations(piece), pictureLimit)
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		return fmt.Errorf("cannot draw the history: %w", err)
	}
	return nil
}

// pictureLimit bounds the search for a picture, which is drawn as far as it got.
const pictureLimit = 10 * time.Second

// shrink returns a part of a piece without an explanation that has none either, and as few steps as trying finds. What
// it leaves out, it leaves out with all that depends on it, so that nobody is left to read what nobody wrote.
func shrink(piece []step, limit time.Duration) []step {
	deadline := time.Now().Add(limit)
	first := start(piece)
	for size := max(1, len(piece)/2); ; {
		removed := false
		for at := 0; at < len(piece) && time.Now().Before(deadline); {
			rest := without(piece, at, min(at+size, len(piece)))
			if judge(rest, first, time.Second) == porcupine.Illegal {
				piece, removed = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed || !time.Now().Before(deadline) {
			return piece
		}
		size = max(1, size/2)
	}
}

// start returns the value that the parts of a wrong piece may begin with: any, as long as the piece is wrong even so.
// Then no part is wrong only because a write before it was left out.
func start(piece []step) string {
	if judge(piece, anyValue, time.Second) == porcupine.Illegal {
		return anyValue
	}
	return ""
}

// without returns the piece without the steps from begin up to end and those that need what only these have written.
func without(piece []step, begin, end int) []step {
	gone := slices.Clone(piece[begin:end])
	rest := slices.Concat(piece[:begin:begin], piece[end:])
	for len(gone) > 0 {
		lost := make(map[string]bool)
		for _, s := range gone {
			if s.puts && s.value != "" {
				lost[s.value] = true
			}
		}
		gone = gone[:0]
		rest = slices.DeleteFunc(rest, func(s step) bool {
			if s.need == exactly && lost[s.want] {
				gone = append(gone, s)
				return true
			}
			return false
		})
	}
	return rest
}
