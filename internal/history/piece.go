package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// piece is a part of a key's history that is judged by itself.
type piece struct {
	steps    []step
	all      []step // of the key
	overtake bool   // whether reads may overtake reads of the same client
}

// judge tells whether steps of the piece have an explanation that begins with the given value, unless that takes
// longer than limit.
func (p *piece) judge(steps []step, start string, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(start), p.operations(steps), limit)
}

// picture writes Porcupine's visualization of some of its steps to an HTML file.
func (p *piece) picture(steps []step, path string) error {
	m := model(p.start(steps))
	_, info := porcupine.CheckOperationsVerbose(m, p.operations(steps), pictureLimit)
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		return fmt.Errorf("cannot draw the history: %w", err)
	}
	return nil
}

// pictureLimit bounds the search for a picture, which is drawn as far as it got.
const pictureLimit = 10 * time.Second

// shrink returns steps of a piece without an explanation that have none either, as few as trying finds. What it leaves
// out, it leaves out with all that depends on it, so that nobody is left to read what nobody wrote.
//
// Who has merely met some value depends on whoever wrote one. If the piece is wrong without those, they are not looked
// at; else no write is left out.
func (p *piece) shrink(limit time.Duration) []step {
	deadline := time.Now().Add(limit)
	few := relaxed(slices.Clone(p.steps), -1)
	first := p.start(few)
	keepWrites := p.judge(few, first, time.Second) != porcupine.Illegal
	if keepWrites {
		few = p.steps
		first = p.start(few)
	}
	for size := max(1, len(few)/2); ; {
		removed := false
		for at := 0; at < len(few) && time.Now().Before(deadline); {
			rest := without(few, at, min(at+size, len(few)), keepWrites)
			if len(rest) < len(few) && p.judge(rest, first, time.Second) == porcupine.Illegal {
				few, removed = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed || !time.Now().Before(deadline) {
			return few
		}
		size = max(1, size/2)
	}
}

// start returns the value that some steps of a wrong piece may begin with: any, as long as they are wrong even so. Then
// no part of them is wrong only because a write before it was left out.
func (p *piece) start(steps []step) string {
	if p.judge(steps, anyValue, time.Second) == porcupine.Illegal {
		return anyValue
	}
	return ""
}

// without returns the steps without those from begin up to end, but for writes if they are to be kept, and without
// those that need what only these have written.
func without(steps []step, begin, end int, keepWrites bool) []step {
	var gone, rest []step
	for i, s := range steps {
		if i >= begin && i < end && !(keepWrites && s.value != "") {
			gone = append(gone, s)
		} else {
			rest = append(rest, s)
		}
	}
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
