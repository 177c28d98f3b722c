package reactor

import "testing"

// turns lets a loop turn n times, each poll bringing so many events, and returns how
// often it rested.
func turns(r *resting, n, events int) (rests int) {
	for range n {
		if r.due() {
			rests++
		}
		r.found(events)
	}
	return rests
}

func TestRestsWhileItHelps(t *testing.T) {
	f := func(expected, events, want int) {
		t.Helper()
		if got := turns(&resting{expected: expected}, 100, events); got != want {
			t.Errorf("%d expected, %d found each time: rested %d times in 100 turns, want %d", expected, events, got, want)
		}
	}
	f(0, 1, 0)
	f(restFrom-1, 2, 0) // few clients wait for nothing
	f(restFrom, 2, 100) // many do, and rests gather events
	f(30, 9, 100)
	f(30, 10, 1) // enough comes at once; the first turn cannot know
	f(1000, 300, 100)
}

// A server that is stuck makes much expected and brings nothing: the loop soon rests no
// more than once in many turns, and again as ever when it is of use.
func TestRestsInVainStop(t *testing.T) {
	r := &resting{expected: 500}
	turns(r, 200, 1)
	if got := turns(r, 650, 1); got > 10 {
		t.Errorf("rested %d times in 650 turns, in vain", got)
	}
	turns(r, 1<<restMax, 5)
	if got := turns(r, 100, 5); got != 100 {
		t.Errorf("rested %d times in 100 turns, of use", got)
	}
}
