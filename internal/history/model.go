package history

import "github.com/anishathalye/porcupine"

// MaxClients is how many connections one history may have.
const MaxClients = 40

// register is the state of the model. All but the value follows from which steps were taken, so it adds no states; it
// is there to leave a wrong way early.
type register struct {
	value   string // empty for none
	readers int32  // steps to come that need the value: it must not be replaced before, as nobody else writes it
	taken   [MaxClients]taken
}

// taken is how many steps of a client were taken, and how many of them were no plain reads.
type taken struct{ all, changes uint16 }

// input is a step with what the rest of its piece says of it.
type input struct {
	*step
	before  taken // steps of its client that come before it
	ordered order
	readers int32 // steps that need what it puts
}

// order says which of its client's steps must be taken before a step.
type order uint8

const (
	noOrder     order = iota
	afterAll          // all that come before it
	afterChange       // all but the reads
)

// inOrder tells whether the step may be taken after those of its client that were.
func (s *input) inOrder(t taken) bool {
	switch s.ordered {
	case afterAll:
		return t == s.before
	case afterChange:
		return t.changes == s.before.changes
	}
	return true
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
	if t := &r.taken[s.op.Client]; !s.inOrder(*t) {
		return false
	} else if s.ordered != noOrder {
		t.add(s.step)
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

func (t *taken) add(s *step) {
	t.all++
	if !s.reads() {
		t.changes++
	}
}

// reads tells whether the step is a plain read.
func (s *step) reads() bool { return s.op.Kind == Get || s.op.Kind == Gets }

// operations are the steps of a piece as Porcupine wants them.
func (p *piece) operations(steps []step) []porcupine.Operation {
	var before [MaxClients]taken
	readers := readers(steps)
	ops := make([]porcupine.Operation, len(steps))
	for i := range steps {
		s := &steps[i]
		in := &input{step: s, readers: readers[s.value]}
		if s.known() {
			in.before, in.ordered = before[s.op.Client], afterAll
			before[s.op.Client].add(s)
			if p.overtake && s.reads() {
				in.ordered = afterChange
			}
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
