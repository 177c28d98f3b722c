// Package agreement models routers that agree on which servers hold keys, in virtual time. What each makes of
// the servers, and what they decide together, is the product's own; the network between them delays each
// message by up to 20 ms and may lose it, and servers answer, refuse, or are silent.
package agreement

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Config says what there is.
type Config struct {
	Routers, Servers int
	Loss             float64 // share of messages between routers
	View             view.Config
	Seed             uint64
}

// State is what a server does when it is asked.
type State uint8

// The states.
const (
	Answers State = iota
	Refuses       // its process was killed
	Silent        // it was stopped, or its cable pulled
)

// Change is one router's switch to another placement.
type Change struct {
	Router int
	At     time.Duration // since the world began to be used
}

// World is routers and servers. It begins when the routers have settled.
type World struct {
	Changes  []Change // since then
	Messages int      // sent between routers since then

	config  Config
	rand    *rand.Rand
	now     time.Time
	start   time.Time
	servers []State
	routers []*router
	mail    []letter // in the order in which it was sent
}

// letter is a message on its way.
type letter struct {
	to    int
	due   time.Time
	bytes []byte
}

const (
	step    = 20 * time.Millisecond
	turn    = 100 * time.Millisecond // between two of a router's
	delay   = 20 * time.Millisecond
	timeout = 250 * time.Millisecond // of probes
	settle  = 7 * time.Second        // they decide nothing for 5 s
)

// New returns a world whose routers have settled.
func New(c Config) *World {
	w := &World{config: c, rand: rand.New(rand.NewPCG(c.Seed, 1)), servers: make([]State, c.Servers), now: time.Unix(1_700_000_000, 0)}
	for i := range c.Routers {
		w.routers = append(w.routers, w.newRouter(i))
	}
	w.Run(settle)
	w.Changes, w.Messages, w.start = nil, 0, w.now
	return w
}

// Set changes what a server does.
func (w *World) Set(server int, s State) { w.servers[server] = s }

// Since is how long the world has been used.
func (w *World) Since() time.Duration { return w.now.Sub(w.start) }

// Run lets time pass.
func (w *World) Run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(step)
		w.deliver()
		for _, r := range w.routers {
			r.step()
		}
	}
}

// Placed reports whether every router has a server in its placement, and Out whether none has.
func (w *World) Placed(server int) bool { return w.count(server) == len(w.routers) }

// Out reports whether no router has a server in its placement.
func (w *World) Out(server int) bool { return w.count(server) == 0 }

func (w *World) count(server int) (placed int) {
	for _, r := range w.routers {
		if p, ok := r.node.View().Find(name(server)); ok && p.Status.Placed() {
			placed++
		}
	}
	return placed
}

// Agreed reports whether all routers have one view.
func (w *World) Agreed() bool {
	first := w.routers[0].node.View()
	for _, r := range w.routers {
		if v := r.node.View(); v.Digest != first.Digest || v.Version != first.Version {
			return false
		}
	}
	return true
}

func (w *World) jitter(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// deliver hands over what is due.
func (w *World) deliver() {
	waiting := w.mail[:0]
	for _, l := range w.mail {
		if w.now.Before(l.due) {
			waiting = append(waiting, l)
			continue
		}
		m, err := view.Decode(l.bytes)
		if err != nil {
			panic("bug: " + err.Error())
		}
		w.routers[l.to].node.Step(m, w.now)
	}
	w.mail = waiting
}

// send sends a message to all other routers.
func (w *World) send(from int, m view.Message) {
	b := view.Encode(m)
	for to := range w.routers {
		if to == from {
			continue
		}
		w.Messages++
		if w.config.Loss == 0 || w.rand.Float64() >= w.config.Loss {
			w.mail = append(w.mail, letter{to, w.now.Add(w.jitter(delay)), b})
		}
	}
}

func name(server int) string { return fmt.Sprintf("s%04d", server) }

// list is what all routers are configured with.
func (w *World) list() (all []view.Server) {
	for i := range w.servers {
		all = append(all, view.Server{Name: name(i), Address: name(i), Weight: 1})
	}
	return all
}

func (w *World) newPool(list []view.Server) *health.Pool {
	p := health.NewPool(health.Config{}, w.now)
	for _, s := range list {
		p.Add(s.Name, true, w.now)
	}
	return p
}
