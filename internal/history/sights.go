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
	wild    map[*Op]bool             // those of them of which it is not known of what

	firstLost time.Duration // when the first incr of unknown outcome was called, if there is one
}

// look gathers what the operations on a key have seen.
func look(ops []*Op) *sights {
	s := &sights{
		at:      make(map[string]time.Duration),
		whole:   make(map[string]string),
		counted: make(map[*Op]string),
		wild:    make(map[*Op]bool),
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

// explain finds for each value that nobody is known to have written the incr of unknown outcome that made it from one
// that was written or seen. Counters start and step by large random numbers, so there is one explanation or none. There
// is none if several incrs of unknown outcome followed each other; then one of them is said to have made the value of
// anything, which is weaker than what happened and as early as that can have been.
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
	var rest []string
	for _, value := range s.unwritten(written) {
		if !s.single(value, written, lost) {
			rest = append(rest, value)
		}
	}
	s.firstLost = lost[0].Call
	for _, value := range rest {
		for _, op := range lost {
			if s.counted[op] == "" && op.Call <= s.at[value] {
				s.counted[op] = value
				s.wild[op] = true
				break
			}
		}
	}
}

// unwritten returns the values that were seen and are not in written, in the order in which they were seen.
func (s *sights) unwritten(written map[string]bool) []string {
	var values []string
	for value := range s.at {
		if !written[value] {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(s.at[a], s.at[b]) })
	return values
}

// single looks for one incr among lost by which the value came from one that was written or seen, and notes it.
func (s *sights) single(value string, written map[string]bool, lost []*Op) bool {
	for _, op := range lost {
		before := shifted(value, -op.Delta)
		_, seen := s.at[before]
		if s.counted[op] == "" && op.Call <= s.at[value] && (written[before] || seen) {
			s.counted[op] = value
			s.see(before, s.at[value])
			return true
		}
	}
	return false
}
