package journal

import (
	"cmp"
	"time"
)

// Process tells one run of a server from another. The zero value is unknown. A process
// number alone is not enough: in a container it is always the same.
type Process struct {
	PID     int
	Started time.Time
}

// startTolerance is how far the start, reckoned from an uptime in whole seconds by a
// clock that may be adjusted, may be off.
const startTolerance = 3 * time.Second

// Replaced reports whether q is certainly another run of the server than p.
func (p Process) Replaced(q Process) bool {
	if p == (Process{}) || q == (Process{}) {
		return false
	}
	return p.PID != q.PID || q.Started.Sub(p.Started).Abs() > startTolerance
}

// Action is what has to be done before a server serves again.
type Action uint8

// The actions.
const (
	// Admit: nothing.
	Admit Action = iota
	// Replay: delete from it the keys of the journal.
	Replay
	// Flush: empty it.
	Flush
	// Quarantine: it stays out until an operator says otherwise.
	Quarantine
)

var actionText = [...]string{"admit", "replay", "flush", "quarantine"}

// String names the action in one word.
func (a Action) String() string { return actionText[a] }

// Outage is what is known about the time a server was away.
type Outage struct {
	// Before and After identify the server's process on both sides of it.
	Before, After Process
	// Began is when the server first failed, Ended when it answered again.
	Began, Ended time.Time
	// Missed is how many keys the journal holds.
	Missed int
	// Overflow says that it does not hold all that was missed; Lost that somebody else's
	// journal is lost, or ours as this router started meanwhile.
	Overflow, Lost bool
}

// Policy is the operator's choice.
type Policy struct {
	// MaxOutage is the length of an outage after which a journal is not trusted; 0 means
	// 10 min.
	MaxOutage time.Duration
	// Quarantine keeps servers out that would have to be flushed.
	Quarantine bool
}

// fresh reports whether the server is a process that has held nothing before the outage
// ended. One that is not the one we knew, and yet started before the outage, has served
// unnoticed for a while.
func (o Outage) fresh() bool {
	return o.Before.Replaced(o.After) && !o.After.Started.Before(o.Began.Add(-time.Second))
}

// Decide says what has to be done before a server serves again. A process that is new is
// empty, whatever happened; one that kept its memory is safe only if all it missed is
// known.
func (p Policy) Decide(o Outage) Action {
	known := !o.Overflow && !o.Lost && o.Ended.Sub(o.Began) <= cmp.Or(p.MaxOutage, 10*time.Minute)
	switch {
	case o.fresh():
		return Admit
	case !known && p.Quarantine:
		return Quarantine
	case !known:
		return Flush
	case o.Missed > 0:
		return Replay
	}
	return Admit
}
