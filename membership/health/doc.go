// Package health is what one router thinks of each server, from the requests it sends
// anyway (passive) and from probes (active). Requests show a failure at once, probes show
// that it is over, so both are used.
//
// The package is a pure state machine: no goroutine, no clock, no socket. Time comes in
// with every call and must not run backwards. Nothing here may be called concurrently.
package health

import (
	"cmp"
	"time"
)

// State is what a router makes of a server.
type State uint8

// The states. A server is used in all of them but Down; see [Pool.Usable].
const (
	// Up: nothing speaks against it.
	Up State = iota
	// Suspect: it has failed lately, or is much slower than the others. It is used, and
	// probed more often.
	Suspect
	// Down: out for this router. It is probed and gets no requests.
	Down
	// Probation: it answers probes, or is new. One request at a time until one succeeds.
	Probation
	// SlowStart: it answers; its weight grows to the full one.
	SlowStart
)

var stateText = [...]string{"up", "suspect", "down", "probation", "slow start"}

// String names the state in one or two words.
func (s State) String() string { return stateText[s] }

// Observation is what happened to one loop's requests to a server since the loop's last
// report. The zero value says nothing.
type Observation struct {
	// OK counts requests that were answered, Latency is the sum of their durations.
	OK      int
	Latency time.Duration
	// Refused, Lost, TimedOut and BadReply count those that were not.
	Refused, Lost, TimedOut, BadReply int
	// Streak is how many of the failures came after the last success.
	Streak int
}

// Errors returns how many requests failed.
func (o Observation) Errors() int { return o.Refused + o.Lost + o.TimedOut + o.BadReply }

// Then returns what both observations together say, if p came after o.
func (o Observation) Then(p Observation) Observation {
	streak := p.Streak
	if p.OK == 0 {
		streak = o.Streak + p.Errors()
	}
	return Observation{
		OK: o.OK + p.OK, Latency: o.Latency + p.Latency, Refused: o.Refused + p.Refused, Lost: o.Lost + p.Lost,
		TimedOut: o.TimedOut + p.TimedOut, BadReply: o.BadReply + p.BadReply, Streak: streak,
	}
}

// Config holds the constants. The zero value of a field means its default; the reasons
// for those are in docs/membership.md.
type Config struct {
	// Fall is how many failures in a row take a server out for this router; default 3.
	Fall int
	// Rise is how many good probes in a row bring it to probation; default 2.
	Rise int
	// Interval is the time between two probes, Fast while the server is not up; defaults
	// 1 s and 500 ms. The caller adds jitter.
	Interval, Fast time.Duration
	// Dead is how long a server must have failed for this router to hold it dead; default
	// 2.5 s.
	Dead time.Duration
	// Window is over how long requests count; default 30 s, after which nothing is left.
	Window time.Duration
	// MinRequests is how many requests in the window it takes to judge their share of
	// errors or their latency; default 20.
	MinRequests int
	// MaxErrors is the share of errors, per mille, that takes a server out; default 500.
	MaxErrors int
	// Slow is how many times the median cost makes a server slow; default 5.
	Slow int
	// ErrorCost is the latency that an error counts as; default 1 s.
	ErrorCost time.Duration
	// Ejection is how long a server with too many errors is out, times the number of such
	// ejections in a row up to ten; default 10 s.
	Ejection time.Duration
	// MaxEjected is the share of servers, per mille, that may be out for errors or
	// latency; at least one may. Default 200.
	MaxEjected int
	// Panic is the share of servers, per mille, that must not be down: with fewer left the
	// fault is probably ours, health is ignored and this router abstains. Default 500.
	Panic int
	// SlowStart is how long a server's weight grows; default 90 s.
	SlowStart time.Duration
	// MinWeight is where it begins, per mille; default 100.
	MinWeight int
	// Aggression bends the ramp: above 1 it rises faster at first; default 1.
	Aggression float64
	// Pause is the gap between two ticks that shows that this process was stopped or
	// starved; default 1 s.
	Pause time.Duration
	// MaxLag is the length of a loop's turn from which this router holds itself too busy
	// to judge others; default 100 ms.
	MaxLag time.Duration
	// Settle is how long it abstains after either; default 3 s.
	Settle time.Duration
}

// WithDefaults returns the configuration with zero fields filled in.
func (c Config) WithDefaults() Config {
	c.Fall = cmp.Or(c.Fall, 3)
	c.Rise = cmp.Or(c.Rise, 2)
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Fast = cmp.Or(c.Fast, 500*time.Millisecond)
	c.Dead = cmp.Or(c.Dead, 2500*time.Millisecond)
	c.Window = cmp.Or(c.Window, 30*time.Second)
	c.MinRequests = cmp.Or(c.MinRequests, 20)
	c.MaxErrors = cmp.Or(c.MaxErrors, 500)
	c.Slow = cmp.Or(c.Slow, 5)
	c.ErrorCost = cmp.Or(c.ErrorCost, time.Second)
	c.Ejection = cmp.Or(c.Ejection, 10*time.Second)
	c.MaxEjected = cmp.Or(c.MaxEjected, 200)
	c.Panic = cmp.Or(c.Panic, 500)
	c.SlowStart = cmp.Or(c.SlowStart, 90*time.Second)
	c.MinWeight = cmp.Or(c.MinWeight, 100)
	c.Aggression = cmp.Or(c.Aggression, 1)
	c.Pause = cmp.Or(c.Pause, time.Second)
	c.MaxLag = cmp.Or(c.MaxLag, 100*time.Millisecond)
	c.Settle = cmp.Or(c.Settle, 3*time.Second)
	return c
}
