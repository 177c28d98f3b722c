// Package meter asks memcached servers, every few seconds, what they do, and makes reports of
// their load of it, for the policy of balance that goes by those.
//
// It asks on connections of its own, so that an answer that is late holds up no request. The price
// is a connection to each server and round, and a load that is seconds old.
package meter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cacherouter/balance"
	"cacherouter/balance/usage"
)

// Server is one to ask.
type Server struct {
	Name    string // by which it is reported
	Address string
}

// Asker asks a server for its statistics. It is called on many goroutines at once.
type Asker interface {
	// Stats returns the answer to "stats" as it came. It ends when the context does.
	Stats(ctx context.Context, address string) ([]byte, error)
}

// Sink takes the reports. Its methods are called on many goroutines at once.
type Sink interface {
	// Report says what a server has done since it was last asked.
	Report(server string, r balance.Report)
	// ForgetReports says that a server is not the process that it was.
	ForgetReports(server string)
}

// Config says whom to ask and whom to tell.
type Config struct {
	// Every is the time between two rounds, 100 ms or more; 0 means DefaultEvery.
	Every time.Duration
	// Timeout bounds each question; 0 means DefaultTimeout.
	Timeout time.Duration
	// Servers returns those to ask now; nobody is asked while there are none.
	Servers func() []Server
	Asker   Asker
	Sink    Sink
	// Log gets changes of state; nil means slog.Default.
	Log *slog.Logger
}

// Defaults.
const (
	DefaultEvery   = 2 * time.Second
	DefaultTimeout = time.Second
)

// Meter asks servers for their load.
type Meter struct {
	cfg    Config
	began  time.Time
	gauges map[Server]*gauge
}

// gauge is what is known of one server.
type gauge struct {
	Server
	last  usage.Snapshot // the zero value, which knows nothing, before there was one
	lacks string         // what was last said to be missing
}

// New returns a meter that [Meter.Run] sets going.
func New(c Config) *Meter {
	c.Every = cmp.Or(c.Every, DefaultEvery)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Log = cmp.Or(c.Log, slog.Default())
	return &Meter{cfg: c, began: time.Now(), gauges: make(map[Server]*gauge)}
}

// Run asks round after round until the context ends, and returns when the last question is over.
func (m *Meter) Run(ctx context.Context) {
	tick := time.NewTicker(m.cfg.Every)
	defer tick.Stop()
	for {
		m.round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round asks all servers side by side. What was known of those that are gone is forgotten.
func (m *Meter) round(ctx context.Context) {
	gauges := make(map[Server]*gauge)
	var asked sync.WaitGroup
	for _, s := range m.cfg.Servers() {
		g := m.gauges[s]
		if g == nil {
			g = &gauge{Server: s}
		}
		gauges[s] = g
		asked.Go(func() { m.read(ctx, g) })
	}
	asked.Wait()
	m.gauges = gauges
}

// read asks a server once.
func (m *Meter) read(ctx context.Context, g *gauge) {
	asking, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	answer, err := m.cfg.Asker.Stats(asking, g.Address)
	if err != nil {
		if ctx.Err() == nil {
			m.lacks(g, "an answer")
		}
		return
	}
	now := usage.Parse(answer, time.Since(m.began))
	before := g.last
	g.last = now
	if before == (usage.Snapshot{}) {
		return
	}
	r, err := usage.Between(before, now, 0)
	switch {
	case err == nil:
		m.cfg.Sink.Report(g.Name, r.Report)
		m.lacks(g, r.Degraded)
	case errors.Is(err, usage.ErrRestarted):
		m.cfg.Sink.ForgetReports(g.Name)
	case errors.Is(err, usage.ErrSilent):
		m.lacks(g, err.Error())
	}
}

// lacks notes what a server does not tell, "" if it tells all, and says so when that is another thing
// than before.
func (m *Meter) lacks(g *gauge, what string) {
	switch {
	case what == g.lacks:
		return
	case what == "":
		m.cfg.Log.Info("server tells its load", "server", g.Name)
	default:
		m.cfg.Log.Warn("server does not tell its load, or not all of it: reads are balanced by what the others tell", "server", g.Name, "lacks", what)
	}
	g.lacks = what
}
