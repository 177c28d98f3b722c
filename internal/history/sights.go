package history

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

// sights is what the clients of one key have seen of its values.
type sights struct {
	at      map[string]time.Duration // when the first who saw that a value had existed returned
	whole   map[string]string        // for each appended piece that was seen, the value that appending it made
	counted map[*Op]string           // for each incr of unknown outcome that was seen to take effect, what it made
}

// look gathers what the operations on a key have seen.
func look(ops []*Op) *sights {
	s := &sights{
		at:      make(map[string]time.Duration),
		whole:   make(map[string]string),
		counted: make(map[*Op]string),
	}
	for _, op := range ops {
		if op.Outcome != Done {
			continue
		}
		switch op.Kind {
		case Get, Gets:
			for value := range descent(op.Value) {
				s.see(value, op.Return)
			}
		case Cas:
			s.see(op.Expect, op.Return)
		case Incr:
			s.see(shifted(op.Value, -op.Delta), op.Return)
		}
	}
	s.explain(ops)
	return s
}

func (s *sights) see(value string, at time.Duration) {
	if before, ok := s.at[value]; ok {
		at = min(at, before)
	}
	s.at[value] = at
	if before, piece := lastPiece(value); before != "" {
		s.whole[piece] = value
	}
}

// shifted returns a counter's value moved by delta, or "" if the value is not a number.
func shifted(value string, delta int64) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(n+delta, 10)
}

// explain finds for each value that nobody is known to have written the incrs of unknown outcome that have made it
// from one that somebody may have written. Counters start and step by large random numbers, so there is one
// explanation or none.
func (s *sights) explain(ops []*Op) {
	written := make(map[string]bool)
	var lost []*Op
	for _, op := range ops {
		switch {
		case op.Outcome == Unknown && op.Kind == Incr:
			lost = append(lost, op)
		case op.Kind.writes() && op.Outcome != Missed && op.Outcome != Refused:
			written[op.Value] = true
		}
	}
	if len(lost) == 0 {
		return
	}
	pending := make([]string, 0, len(s.at))
	for value := range s.at {
		pending = append(pending, value)
	}
	slices.SortFunc(pending, func(a, b string) int { return cmp.Compare(s.at[a], s.at[b]) })
	for _, value := range pending {
		if !written[value] {
			s.trace(value, written, lost, maxLost)
		}
	}
}

// maxLost is how many incrs of unknown outcome may follow each other with nobody looking in between and still be
// found. More of them make a false alarm; they need as many failed requests that worked.
const maxLost = 3

// trace looks for at most depth incrs among lost by which value came from one that was written or seen, and notes them.
func (s *sights) trace(value string, written map[string]bool, lost []*Op, depth int) bool {
	for _, op := range lost {
		if s.counted[op] != "" || op.Call > s.at[value] {
			continue
		}
		before := shifted(value, -op.Delta)
		if before == "" {
			return false
		}
		_, seen := s.at[before]
		if !written[before] && !seen && (depth == 1 || !s.traceUnseen(before, s.at[value], written, lost, depth-1)) {
			continue
		}
		s.counted[op] = value
		s.see(before, s.at[value])
		return true
	}
	return false
}

// traceUnseen traces a value that only an incr has met, no later than at.
func (s *sights) traceUnseen(value string, at time.Duration, written map[string]bool, lost []*Op, depth int) bool {
	s.at[value] = at
	if s.trace(value, written, lost, depth) {
		return true
	}
	delete(s.at, value)
	return false
}
