package health

import "time"

// Changes returns the changes of state since the last call.
func (p *Pool) Changes() []Change {
	c := p.changes
	p.changes = nil
	return c
}

// State returns a server's state; that of an unknown one is Down.
func (p *Pool) State(server string) State {
	if m := p.machines[server]; m != nil {
		return m.state
	}
	return Down
}

// Usable reports whether reads may be sent to a server. In a panic they may be sent to
// any: with most servers down, failing over only piles the load on those left.
func (p *Pool) Usable(server string) bool {
	m := p.machines[server]
	return m != nil && (p.panicky || m.state != Down)
}

// Reachable reports whether the server answers at all. Only one that does not is a
// reason to fail its writes.
func (p *Pool) Reachable(server string) bool {
	m := p.machines[server]
	return m != nil && !m.unreachable()
}

// Admit asks to send a request to a server in probation, which takes one at a time. In
// other states it is just Usable.
func (p *Pool) Admit(server string) bool {
	m := p.machines[server]
	if m == nil || m.state != Probation {
		return p.Usable(server)
	}
	if m.busy {
		return false
	}
	m.busy = true
	return true
}

// Weight returns the share of its full load that a server may get, per mille: it grows
// during slow start. Servers in probation have the smallest weight, unusable ones none.
func (p *Pool) Weight(server string, now time.Time) int {
	m := p.machines[server]
	switch {
	case m == nil || !p.Usable(server):
		return 0
	case m.state == Probation:
		return p.cfg.MinWeight
	case m.state == SlowStart:
		return p.cfg.Ramp(now.Sub(m.entered))
	}
	return 1000
}

// Cost returns the mean latency of a server's requests over the window, an error counted
// as a slow one; 0 when there were none. Use it to choose among servers.
func (p *Pool) Cost(server string) time.Duration {
	m := p.machines[server]
	if m == nil {
		return 0
	}
	return m.requests.sum().cost(p.cfg.ErrorCost)
}

// ProbeEvery returns the time between two probes of a server; the caller adds jitter.
func (p *Pool) ProbeEvery(server string) time.Duration {
	m := p.machines[server]
	if m == nil || m.state == Up || m.state == SlowStart {
		return p.cfg.Interval
	}
	return p.cfg.Fast
}

// Verdict returns what to tell other routers about a server.
func (p *Pool) Verdict(server string, now time.Time) Verdict {
	m := p.machines[server]
	if m == nil {
		return Verdict{Unsure, now}
	}
	return m.verdict(now)
}

// Abstains reports whether this router had better not vote: it was stopped, is too busy,
// or finds so many servers down that the fault is probably its own.
func (p *Pool) Abstains(now time.Time) bool {
	return now.Before(p.abstain) || p.looksDown()
}

// Panics reports whether health is being ignored because too many servers look down.
func (p *Pool) Panics() bool { return p.panicky }
