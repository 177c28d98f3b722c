package bounded

// Tally is one event loop's part in a Bound. What the loop adds and releases is kept here, in
// memory that no other processor writes to, until Settle passes the difference on. A loop that
// settles at the end of each turn, before what it has written leaves, and before it asks for room,
// tells the others of a request no later than its server. What it takes back they learn up to a
// turn late, which errs on the side of a refusal. It is for one goroutine and allocates nothing.
type Tally struct {
	bound   *Bound
	servers []owed
	changed []int // servers of which something is kept
}

// owed is what is not passed on yet of one server.
type owed struct {
	units   int
	changed bool
}

// NewTally returns a tally with nothing to pass on to a bound.
func NewTally(b *Bound) *Tally {
	return &Tally{bound: b, servers: make([]owed, b.Servers()), changed: make([]int, 0, b.Servers())}
}

// Add counts units at a server as [Bound.Add] does, or takes back so many, which may be negative.
func (t *Tally) Add(server, units int) {
	o := &t.servers[server]
	o.units += units
	if !o.changed {
		o.changed = true
		t.changed = append(t.changed, server)
	}
}

// InFlight returns the units in flight at a server as this loop knows it.
func (t *Tally) InFlight(server int) int { return t.bound.InFlight(server) + t.servers[server].units }

// Settle passes on what has changed. It panics as [Bound.Release] does.
func (t *Tally) Settle() {
	for _, server := range t.changed {
		switch units := t.servers[server].units; {
		case units > 0:
			t.bound.Add(server, units)
		case units < 0:
			t.bound.Release(server, -units)
		}
		t.servers[server] = owed{}
	}
	t.changed = t.changed[:0]
}
