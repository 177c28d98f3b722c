//go:build linux

// Package scenario breaks real fleets on purpose and holds what clients see against its goals.
//
// A scenario starts memcached servers and routers as processes, loads them at a fixed rate, does
// what its name says, and reports figures beside goals. Goals are of time and of counts, so a
// machine that is busy with something else can miss them; what was measured is printed either way.
package scenario

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/ledger"
	"cacherouter/loadtest/traffic"
)

// Scenario is something that happens to a fleet.
type Scenario struct {
	Name  string
	About string // one line
	run   func(*stage) error
}

// All are the scenarios, in the order in which "all" runs them.
func All() []Scenario {
	return []Scenario{
		{"steady", "nothing happens: nothing fails, and nothing is lost", steady},
		{"kill", "a server is killed: errors end at once, and all routers place its keys elsewhere together", kill},
		{"stop", "a server is stopped (SIGSTOP) and goes on later", stop},
		{"blip", "a server is away for less than 3 s: nothing is placed anew", blip},
		{"flap", "a server comes and goes: it is placed elsewhere once, not each time", flap},
		{"partition", "two of five routers cannot talk to the other three, and a server dies meanwhile", partition},
		{"router", "a router is stopped for 10 s, then gets a tenth of a processor: nothing is placed anew", router},
		{"router-kill", "a router is killed: clients that know another one see nothing", routerKill},
		{"roll-routers", "all routers are restarted, one after the other: clients see nothing", rollRouters},
		{"roll-servers", "all servers are restarted, one after the other, at once and drained before", rollServers},
		{"reload", "configurations are read again and again under load, right and wrong ones", reload},
		{"scale-out", "an 11th server joins at 95 % hits: how much more the origin is asked", scaleOut},
		{"return", "a server is killed and comes back empty: how many hits are left", comeBack},
		{"stale", "everything that may bring old values back: they are looked for", stale},
		{"checks", "one of three servers is killed within 600 requests: errors without health checks, with active ones, with ours", checks},
		{"hot", "half of all requests are for one key: how full its server is, with each remedy", hot},
		{"stampede", "1,000 clients ask for one missing key at once: what servers and the origin see of it", stampede},
		{"slow", "one of eight servers is slowed to a tenth: what comes to it, with each bound", slow},
		{"fast-fail", "one of eight servers fails every request within no time: what comes to it, and to clients", fastFail},
		{"soak", "hours in small: memory and descriptors of routers stay as they are", soak},
	}
}

// Find returns the scenarios of that name; "all" is every one.
func Find(name string) ([]Scenario, error) {
	all := All()
	if name == "all" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no scenario %q", name)
	}
	return all[i : i+1], nil
}

// Config says how scenarios are run. Binary must be set.
type Config struct {
	Binary  string // of cacherouter
	Long    bool   // the long forms: more repeats, more operations, longer faults
	Repeats int    // of scenarios that repeat; 0 is their default
	// For is how long soak and steady last; 0 is as long as their form does.
	For  time.Duration
	Note func(string) // is told what happens, may be nil
	Logs io.Writer    // gets what routers log, may be nil; see [fleet.Config]
}

// Run runs a scenario. The report is valid, though it is not whole and does not pass, when
// there is an error.
func Run(ctx context.Context, s Scenario, c Config) (*Report, error) {
	st := &stage{Config: c, Report: &Report{Name: s.Name}, ctx: ctx}
	if err := s.run(st); err != nil {
		st.yes("it was done to its end", false)
		return st.Report, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return st.Report, nil
}

// stage is a scenario being run.
type stage struct {
	Config
	*Report
	ctx context.Context
}

func (s *stage) note(format string, args ...any) {
	if s.Note != nil {
		s.Note(s.Name + ": " + fmt.Sprintf(format, args...))
	}
}

// repeats is how often to do something: as the user says, or the short or the long form's number.
func (s *stage) repeats(short, long int) int {
	switch {
	case s.Repeats > 0:
		return s.Repeats
	case s.Long:
		return long
	}
	return short
}

// lasting is as length, if the user does not say how long.
func (s *stage) lasting(short, long time.Duration) time.Duration {
	if s.For > 0 {
		return s.For
	}
	return s.length(short, long)
}

// length is a time that depends on the form.
func (s *stage) length(short, long time.Duration) time.Duration {
	if s.Long {
		return long
	}
	return short
}

// wait lets time pass.
func (s *stage) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// settle is how long routers decide nothing after their start, and a little more.
const settle = 6 * time.Second

// fleet starts a fleet of settled routers.
func (s *stage) fleet(c fleet.Config) (*fleet.Fleet, error) {
	c.Binary, c.Logs = s.Binary, s.Logs
	f, err := fleet.Start(s.ctx, c)
	if err != nil {
		return nil, err
	}
	s.note("%d servers and %d routers run", c.Servers, c.Routers)
	if c.Static || c.Routers == 0 {
		return f, nil
	}
	if err := s.wait(settle); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// under starts a fleet and the usual load through all of its routers: a tenth of the requests write,
// and what is missed is written again. change may have it otherwise, and may be nil. When do is done
// the load ends, and what it saw is reported.
func (s *stage) under(c fleet.Config, change func(*traffic.Plan), do func(*fleet.Fleet, *traffic.Running) error) error {
	f, err := s.fleet(c)
	if err != nil {
		return err
	}
	defer f.Stop()
	r, err := s.load(f, change)
	if err != nil {
		return err
	}
	defer r.Stop()
	if err := s.wait(2 * time.Second); err != nil {
		return err
	}
	err = do(f, r)
	s.crashes(f)
	if err == nil {
		s.correct(s.stopLoad(r))
	}
	return err
}

// crashes reports routers that have ended by themselves.
func (s *stage) crashes(f *fleet.Fleet) {
	crashed := 0
	for _, r := range f.Routers {
		if r.Crashed() {
			crashed++
			s.note("router %s has crashed", r.Name)
		}
	}
	s.atMost("crashed routers", crashed, 0)
}

// load fills a fleet and begins the usual load.
func (s *stage) load(f *fleet.Fleet, change func(*traffic.Plan)) (*traffic.Running, error) {
	p := traffic.Plan{
		Targets: f.Targets(), Ledger: ledger.New(20_000, 100), Rate: 2000, Writes: 100, Refill: true,
		Timeout: 5 * time.Second, Seed: 1,
	}
	if change != nil {
		change(&p)
	}
	if err := traffic.Fill(s.ctx, p); err != nil {
		return nil, err
	}
	return traffic.Start(s.ctx, p)
}
