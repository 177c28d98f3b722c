package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// MaxClients is how many connections one history may have.
const MaxClients = 40

// register is the state of the model: a value, empty for none, and how many steps of each client were taken. The
// latter follow from which steps were taken, so they add no states; they keep the order of requests on a connection.
type register struct {
	value string
	taken [MaxClients]uint16
}

// input is a step with its place among those of its client in the piece; 0 is anywhere.
type input struct {
	*step
	turn uint16
}

// model is the sequential specification of one key.
var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, in, _ any) (bool, any) {
		r, s := state.(register), in.(*input)
		if s.turn != 0 && s.turn != r.taken[s.op.Client]+1 || !s.meets(r.value) {
			return false, state
		}
		if s.turn != 0 {
			r.taken[s.op.Client] = s.turn
		}
		if s.puts {
			r.value = s.value
		}
		return true, r
	},
	DescribeOperation: func(in, _ any) string { return in.(*input).op.action() },
	DescribeState: func(state any) string {
		if value := state.(register).value; value != "" {
			return value
		}
		return "none"
	},
}

// operations are the steps of a piece as Porcupine wants them.
func operations(steps []step) []porcupine.Operation {
	var turns [MaxClients]uint16
	ops := make([]porcupine.Operation, len(steps))
	for i := range steps {
		s := &steps[i]
		in := &input{step: s}
		if s.known() {
			turns[s.op.Client]++
			in.turn = turns[s.op.Client]
		}
		ops[i] = porcupine.Operation{
			ClientId: s.op.Client,
			Input:    in,
			Call:     int64(s.op.Call),
			Return:   int64(s.ret),
		}
	}
	return ops
}

// judge tells whether a piece has an explanation, unless that takes longer than limit.
func judge(piece []step, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, operations(piece), limit)
}

// picture writes Porcupine's visualization of a piece to an HTML file.
func picture(piece []step, path string) error {
	_, info := porcupine.CheckOperationsVerbose(model, operations(piece), pictureLimit)
	if err := porcupine.VisualizePath(model, info, path); err != nil {
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
	for size := max(1, len(piece)/2); ; {
		removed := false
		for at := 0; at < len(piece) && time.Now().Before(deadline); {
			rest := without(piece, at, min(at+size, len(piece)))
			if judge(rest, time.Second) == porcupine.Illegal {
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
