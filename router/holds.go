package router

import (
	"time"

	"cacherouter/reactor"
)

// holds are what a loop has put off: deletions that wait until no copy of their key is on
// its way, and the end of writes that may yet be done though they have failed.
type holds struct {
	waiting []func() bool // each is called until it returns true
	doubts  []doubt       // by time
	timer   reactor.Timer
}

// doubt is a write that may be done until a time.
type doubt struct {
	hash  uint64
	all   bool // a flush
	until time.Time
}

// holdEvery is how often it is looked whether copies are still on their way. They take a
// round trip.
const holdEvery = time.Millisecond

// keep calls f now and then until it returns true.
func (h *holds) keep(w *worker, f func() bool) {
	if f() {
		return
	}
	h.waiting = append(h.waiting, f)
	h.arm(w)
}

// doubt ends a write when it cannot be done any more.
func (h *holds) doubt(w *worker, hash uint64) { h.add(w, doubt{hash: hash}) }

// doubtAll is doubt for a flush.
func (h *holds) doubtAll(w *worker) { h.add(w, doubt{all: true}) }

func (h *holds) add(w *worker, d doubt) {
	d.until = w.loop.Now().Add(w.p.copyLife())
	h.doubts = append(h.doubts, d)
	h.arm(w)
}

// arm sets the timer to the next time that something is to be looked at.
func (h *holds) arm(w *worker) {
	h.timer.Func = func() { h.look(w) }
	switch {
	case len(h.waiting) > 0:
		w.loop.Set(&h.timer, w.loop.Now().Add(holdEvery))
	case len(h.doubts) > 0:
		w.loop.Set(&h.timer, h.doubts[0].until)
	}
}

func (h *holds) look(w *worker) {
	waiting := h.waiting
	h.waiting = nil
	for _, f := range waiting {
		if !f() {
			h.waiting = append(h.waiting, f)
		}
	}
	for len(h.doubts) > 0 && !h.doubts[0].until.After(w.loop.Now()) {
		if d := h.doubts[0]; d.all {
			w.epochs.EndedAll()
		} else {
			w.epochs.Ended(d.hash)
		}
		h.doubts = h.doubts[1:]
	}
	h.arm(w)
}
