package history

import "time"

// need is what an operation tells of the value that it met.
type need uint8

const (
	anything need = iota
	present       // there was a value
	exactly       // it was want
	other         // there was one, but not want
)

// step is an operation seen as a change of one register. What says nothing and changes nothing has no step.
type step struct {
	op    *Op
	need  need
	want  string
	puts  bool   // whether the register changes
	value string // to what; empty for no value
	call  time.Duration
	ret   time.Duration
}

// meets tells whether a register with this value could have answered so.
func (s *step) meets(value string) bool {
	switch s.need {
	case present:
		return value != ""
	case exactly:
		return value == s.want
	case other:
		return value != "" && value != s.want
	}
	return true
}

// known tells whether the operation was answered, so that it took effect between its call and its return.
func (s *step) known() bool { return s.op.Outcome != Unknown }

// steps turns the operations on one key, in the order of their calls, into steps in that order.
//
// An operation of unknown outcome is left out if nobody saw what it wrote. Otherwise it did take effect, and before the
// first who saw it returned, which makes it as definite as any other. Leaving one out takes nothing from the others but
// a value that they may have met without telling which; so what they need is then no longer asked.
func steps(ops []*Op) []step {
	s := look(ops)
	unseen := never // when the first write that nobody saw was called
	var all []step
	for _, op := range ops {
		if op.Outcome == Unknown {
			if st, ok := s.unknown(op); ok {
				all = append(all, st)
			} else if op.Kind.writes() {
				unseen = min(unseen, op.Call)
			}
		} else if st, ok := s.answered(op); ok {
			all = append(all, st)
		}
	}
	return relaxed(all, unseen)
}

// writes tells whether operations of this kind can leave a value.
func (k Kind) writes() bool {
	switch k {
	case Set, Add, Append, Cas, Incr:
		return true
	}
	return false
}

// relaxed drops the needs that a write called at unseen may have met.
func relaxed(all []step, unseen time.Duration) []step {
	kept := all[:0]
	for _, s := range all {
		if unseen < s.ret && (s.need == present || s.need == other) {
			s.need = anything
		}
		if s.need != anything || s.puts {
			kept = append(kept, s)
		}
	}
	return kept
}

// answered returns the step of an operation with a known outcome, if it has one.
func (s *sights) answered(op *Op) (step, bool) {
	st := step{op: op, call: op.Call, ret: op.Return}
	switch {
	case op.Kind == Delete:
		st.puts = true
		if op.Outcome == Done {
			st.need = present
		}
	case op.Outcome == Missed, op.Kind == Append && op.Outcome == Refused:
		return st, false
	case op.Outcome == Refused && op.Kind == Cas:
		st.need, st.want = other, op.Expect
	case op.Outcome == Refused, op.Kind == Touch:
		st.need = present
	case op.Kind == Get, op.Kind == Gets:
		st.need, st.want = exactly, op.Value
	default:
		s.write(&st)
	}
	return st, true
}

// unknown returns the step of an operation that may have taken effect, if somebody saw that it did.
func (s *sights) unknown(op *Op) (step, bool) {
	st := step{op: op, call: op.Call}
	if !op.Kind.writes() {
		return st, false
	}
	s.write(&st)
	if s.wild[op] {
		st.need, st.call = anything, s.firstLost
	}
	at, seen := s.at[st.value]
	st.ret = max(at, op.Call)
	return st, seen
}

// write fills in what a successful write needs and puts.
func (s *sights) write(st *step) {
	op := st.op
	st.puts, st.value = true, op.Value
	switch op.Kind {
	case Cas:
		st.need, st.want = exactly, op.Expect
	case Incr:
		if op.Outcome == Unknown {
			st.value = s.counted[op]
		}
		st.need, st.want = exactly, shifted(st.value, -op.Delta)
	case Append:
		st.need, st.value = present, "?+"+op.Value // a value nobody has seen
		if whole, seen := s.whole[op.Value]; seen {
			st.need, st.value = exactly, whole
			st.want, _ = lastPiece(whole)
		}
	}
}
