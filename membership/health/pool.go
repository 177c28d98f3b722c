package health

import (
	"slices"
	"time"
)

// Change is one change of a server's state.
type Change struct {
	Server   string
	From, To State
	Reason   string
}

// Pool is all servers as this router sees them.
type Pool struct {
	cfg      Config
	machines map[string]*machine
	names    []string // sorted
	ticked   time.Time
	abstain  time.Time // until when this router trusts nothing it sees
	void     time.Time // until when failures are not taken in
	panicky  bool
	changes  []Change
}

// NewPool returns a pool without servers.
func NewPool(c Config, now time.Time) *Pool {
	return &Pool{cfg: c.WithDefaults(), machines: map[string]*machine{}, ticked: now}
}

// Add adds a server. One that is known, because it was configured before this router
// started, begins as up; a new one begins in probation. Adding it again changes nothing.
func (p *Pool) Add(server string, known bool, now time.Time) {
	if p.machines[server] != nil {
		return
	}
	p.machines[server] = newMachine(&p.cfg, known, now)
	i, _ := slices.BinarySearch(p.names, server)
	p.names = slices.Insert(p.names, i, server)
}

// Remove forgets a server.
func (p *Pool) Remove(server string) {
	if i, ok := slices.BinarySearch(p.names, server); ok {
		p.names = slices.Delete(p.names, i, i+1)
		delete(p.machines, server)
	}
}

// Observe takes in what happened to requests. Unknown servers are ignored.
func (p *Pool) Observe(server string, o Observation, now time.Time) {
	p.advance(now)
	if now.Before(p.void) && o.Errors() > 0 {
		return
	}
	p.change(server, func(m *machine) { m.observe(o, now) })
}

// Probe takes in the result of a probe. Unknown servers are ignored.
func (p *Pool) Probe(server string, ok bool, started, now time.Time) {
	p.advance(now)
	if now.Before(p.void) && !ok {
		return
	}
	p.change(server, func(m *machine) { m.probe(ok, started, now) })
}

// Lag tells the length of a loop's turn.
func (p *Pool) Lag(turn time.Duration, now time.Time) {
	if turn > p.cfg.MaxLag {
		p.abstain = now.Add(p.cfg.Settle)
	}
}

// Tick lets time pass; call it several times a second.
func (p *Pool) Tick(now time.Time) {
	p.advance(now)
	median := p.medianCost()
	ejected := p.count(func(m *machine) bool { return !m.outUntil.IsZero() })
	limit := max(1, len(p.names)*p.cfg.MaxEjected/1000)
	for _, name := range p.names {
		p.change(name, func(m *machine) {
			m.tick(now)
			if ejected < limit && p.compare(m, median, now) {
				ejected++
			}
		})
	}
	p.panicky = p.looksDown()
}

// compare judges a server by its requests and reports whether it was ejected.
func (p *Pool) compare(m *machine, median time.Duration, now time.Time) bool {
	sum := m.requests.sum()
	if m.state == Down || m.state == Probation {
		return false
	}
	if sum.requests() < p.cfg.MinRequests {
		m.setSlow(false, now)
		return false
	}
	if sum.failing(p.cfg.MaxErrors) {
		m.eject(now)
		return true
	}
	limit := time.Duration(p.cfg.Slow) * median
	if m.slow {
		limit = limit * 3 / 5 // to be well again takes more than to be not quite ill
	}
	m.setSlow(median > 0 && sum.cost(p.cfg.ErrorCost) > limit, now)
	return false
}

// medianCost is the median over the servers that had enough requests, 0 for fewer than
// three.
func (p *Pool) medianCost() time.Duration {
	var costs []time.Duration
	for _, m := range p.machines {
		if sum := m.requests.sum(); sum.requests() >= p.cfg.MinRequests {
			costs = append(costs, sum.cost(p.cfg.ErrorCost))
		}
	}
	if len(costs) < 3 {
		return 0
	}
	slices.Sort(costs)
	return costs[(len(costs)-1)/2]
}

// advance notices that this process did not run for a while. What it then finds, timeouts
// above all, says nothing about the servers.
func (p *Pool) advance(now time.Time) {
	gap := now.Sub(p.ticked)
	if gap < 0 && gap > -p.cfg.Pause/2 {
		return // who calls read the clock before it waited for others
	}
	p.ticked = now
	if gap >= 0 && gap <= p.cfg.Pause {
		return
	}
	p.abstain, p.void = now.Add(p.cfg.Settle), now.Add(p.cfg.Settle/3)
	for _, m := range p.machines {
		m.forget()
		if gap < 0 {
			m.rewind(now)
		}
	}
}

func (p *Pool) change(server string, f func(*machine)) {
	m := p.machines[server]
	if m == nil {
		return
	}
	from := m.state
	if f(m); m.state != from {
		p.changes = append(p.changes, Change{server, from, m.state, m.reason})
	}
}

func (p *Pool) count(f func(*machine) bool) int {
	n := 0
	for _, m := range p.machines {
		if f(m) {
			n++
		}
	}
	return n
}

// looksDown reports whether so many servers are unreachable that it is probably us.
func (p *Pool) looksDown() bool {
	down := p.count((*machine).unreachable)
	return (len(p.names)-down)*1000 < len(p.names)*p.cfg.Panic
}
