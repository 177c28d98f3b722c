package reactor

import (
	"container/heap"
	"time"
)

// Timer calls a function on its loop at a set time. The zero value is not set.
type Timer struct {
	// Func is called on the loop's goroutine when the time has come.
	Func  func()
	due   time.Duration // on the loop's clock, as Elapsed tells it
	index int           // position in the heap plus one; 0 when not set
}

// Set arms t for the given time, or moves it there.
func (l *Loop) Set(t *Timer, when time.Time) {
	t.due = when.Sub(l.began)
	if t.index > 0 {
		heap.Fix(&l.timers, t.index-1)
		return
	}
	heap.Push(&l.timers, t)
}

// Stop disarms t; an unarmed timer is left alone.
func (l *Loop) Stop(t *Timer) {
	if t.index > 0 {
		heap.Remove(&l.timers, t.index-1)
	}
}

// Armed reports whether t waits for its time.
func (t *Timer) Armed() bool { return t.index > 0 }

func (l *Loop) runTimers() {
	for len(l.timers) > 0 && l.timers[0].due <= l.elapsed {
		t := heap.Pop(&l.timers).(*Timer)
		t.Func()
	}
}

// untilTimer returns how long the loop may sleep, which it does from the end of the turn before.
func (l *Loop) untilTimer() time.Duration {
	if len(l.timers) == 0 {
		return idle
	}
	return max(0, min(idle, l.timers[0].due-l.over))
}

type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	*h = append(*h, t)
	t.index = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = 0
	return t
}
