// Package reload says what a change of the configuration changes, keeps what has become of
// reloads, and watches the file. How a change is made it does not know.
package reload

import (
	"fmt"
	"sync"
	"time"
)

// Outcome is what became of a reload.
type Outcome string

// The outcomes.
const (
	// Applied: the change is in force.
	Applied Outcome = "applied"
	// Unchanged: there is nothing to change.
	Unchanged Outcome = "unchanged"
	// Invalid: the configuration cannot be read, or has a fault.
	Invalid Outcome = "invalid"
	// Refused: it is sound, but moves too many keys, or changes what only an upgrade can.
	Refused Outcome = "refused"
	// Failed: it could not be put in force.
	Failed Outcome = "failed"
)

// Outcomes returns all of them.
func Outcomes() []Outcome { return []Outcome{Applied, Unchanged, Invalid, Refused, Failed} }

// Options say how a reload is done. The zero value is the usual way.
type Options struct {
	// DryRun changes nothing: it only says what would be.
	DryRun bool
	// Force lets it move more keys than it may.
	Force bool
}

// Change is one thing that is otherwise.
type Change struct {
	// Subject is what has changed: a pool, a route, or a setting, by name.
	Subject string `json:"subject"`
	// Change says how, in words.
	Change string `json:"change"`
	// Moved is the share of its keys that get another server, 0 to 1.
	Moved float64 `json:"moved"`
}

// String returns the change as a line for people.
func (c Change) String() string {
	s := c.Subject + ": " + c.Change
	if c.Moved > 0 {
		s += fmt.Sprintf(" (moves %.3g %% of its keys)", 100*c.Moved)
	}
	return s
}

// Report is what a reload did, or would do.
type Report struct {
	Outcome Outcome `json:"outcome"`
	DryRun  bool    `json:"dry_run,omitempty"`
	// Error says why nothing has changed; empty if that is not so.
	Error string `json:"error,omitempty"`
	// Moved is the greatest share of the keys of a route that get another server, and MaxMoved
	// how much that may be without force; 0 to 1.
	Moved    float64 `json:"moved"`
	MaxMoved float64 `json:"max_moved"`
	// Changes are all that is otherwise.
	Changes []Change `json:"changes"`
	// Upgrade are the settings that are otherwise and stay as they are until an upgrade.
	Upgrade []string `json:"upgrade"`
}

// Fails makes the report one of a reload that has changed nothing, and returns it.
func (r *Report) Fails(o Outcome, err error) *Report {
	r.Outcome, r.Error = o, err.Error()
	return r
}

// OK reports whether the configuration is in force, or would be.
func (r *Report) OK() bool { return r.Error == "" }

// State is what has become of reloads so far.
type State struct {
	// At is when the last one was, Outcome what became of it, and Error why it was not put in
	// force; zero if there was none.
	At      time.Time `json:"at,omitzero"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`
	// Loaded is when the configuration in force was last found to be that of the file.
	Loaded time.Time `json:"loaded"`
	// Upgrade are the settings of the file that wait for an upgrade.
	Upgrade []string `json:"upgrade"`
	// Counts are how many reloads had each outcome; those that were only tried are left out.
	Counts map[Outcome]uint64 `json:"counts"`
}

// Journal keeps that. Any goroutine may use it.
type Journal struct {
	mu    sync.Mutex
	state State // guarded by mu
}

// NewJournal returns one that begins with a configuration that was loaded at a time.
func NewJournal(loaded time.Time) *Journal {
	return &Journal{state: State{Loaded: loaded.UTC(), Upgrade: []string{}, Counts: map[Outcome]uint64{}}}
}

// Note takes in what has become of a reload.
func (j *Journal) Note(r *Report, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.state
	s.At, s.Outcome, s.Error = at.UTC(), r.Outcome, r.Error
	s.Counts[r.Outcome]++
	if r.OK() {
		s.Loaded, s.Upgrade = at.UTC(), append([]string{}, r.Upgrade...)
	}
}

// State returns it. It belongs to the caller.
func (j *Journal) State() State {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Upgrade = append([]string{}, s.Upgrade...)
	s.Counts = make(map[Outcome]uint64)
	for _, o := range Outcomes() {
		s.Counts[o] = j.state.Counts[o]
	}
	return s
}
