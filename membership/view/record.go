package view

import (
	"time"

	"cacherouter/membership/damping"
	"cacherouter/membership/health"
)

// Status is what the routers have agreed on about a server.
type Status uint8

// The statuses.
//
//	In ──failing──▶ Away ──dead for the grace time──▶ Out
//	 ◀────fine───────┘  ◀ ─ ─ ─ ─ called off ─ ─ ─ ─ ─┘ │
//	 ◀───────────────fine, steady, not damped───────────┘
//	any ──drain──▶ Draining ──undrain──▶ Out
const (
	// In: it holds its keys.
	In Status = iota
	// Away: its keys are failed over and the placement is as it was.
	Away
	// Out: its keys have been moved.
	Out
	// Draining: the operator wants it empty; its keys have been moved.
	Draining
)

var statusText = [...]string{"in", "away", "out", "draining"}

// String names the status in one word.
func (s Status) String() string { return statusText[s] }

// Placed reports whether the placement counts a server of this status.
func (s Status) Placed() bool { return s <= Away }

// Verdict is what a router says of one server.
type Verdict struct {
	Server  string
	Opinion health.Opinion
	// For is how long it has been so, when it was said.
	For time.Duration
	// Flushed says that the router has emptied the server since it was last in.
	Flushed bool
}

// Observer is all that one router says. Of two records of a router, the one with the
// higher Boot counts, then that with the higher Seq.
type Observer struct {
	Router    string
	Boot, Seq uint64
	// Sent is the router's clock, to the millisecond.
	Sent time.Time
	// List is the digest of the list of servers it uses, Pending that of the list it would
	// use next (the same if none), Placement that of its placement.
	List, Pending, Placement uint64
	// Abstains says that it does not trust its own observations, Left that it is going.
	Abstains, Left bool
	// Verdicts holds what is not plainly fine, and every server that is not in.
	Verdicts []Verdict
}

func (o *Observer) newerThan(p *Observer) bool {
	if o.Boot != p.Boot {
		return o.Boot > p.Boot
	}
	return o.Seq > p.Seq
}

// Decision is a change of a server's status, or of the list where Server is empty.
type Decision struct {
	Server string
	// N counts the decisions on this server.
	N uint64
	// Was holds before At, Now from then on. They are the same when a change is called off.
	Was, Now Status
	// At is on the routers' common clock, to the millisecond.
	At time.Time
	// List is the digest of the new list, in a decision on the list.
	List uint64
	// Mark is the server's record of flaps when the decision was taken.
	Mark damping.Mark
}

// status returns what holds at the given time.
func (d *Decision) status(wall time.Time) Status {
	if wall.Before(d.At) {
		return d.Was
	}
	return d.Now
}

// pending reports whether the change is still to come.
func (d *Decision) pending(wall time.Time) bool {
	return wall.Before(d.At) && d.Was != d.Now
}

// mark returns the record of flaps that the decision leaves.
func (d *Decision) mark(c *Config) damping.Mark {
	if d.Was == Away && d.Now == Out {
		return d.Mark.Depart(c.Damping, c.OutPenalty, d.At)
	}
	return d.Mark
}

// beats orders decisions on one server; it is a total order, so merging in any order
// ends with the same one.
func (d *Decision) beats(o *Decision) bool {
	switch {
	case d.N != o.N:
		return d.N > o.N
	case !d.At.Equal(o.At):
		return d.At.Before(o.At)
	case d.Now != o.Now:
		return d.Now > o.Now
	case d.Was != o.Was:
		return d.Was > o.Was
	case d.List != o.List:
		return d.List > o.List
	}
	return d.Mark.Penalty > o.Mark.Penalty
}

// Message is what nodes exchange. Losing, repeating or delaying one does no harm.
type Message struct {
	Observers []Observer
	Decisions []Decision
}
