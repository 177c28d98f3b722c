package membership

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
)

// Prober talks to a server apart from the clients' requests; [probe.TCP] is one. It is
// used by several goroutines. Each method ends when its context does.
type Prober interface {
	// Probe asks whether a memcached answers.
	Probe(ctx context.Context, address string) error
	// Identify asks which process it is.
	Identify(ctx context.Context, address string) (journal.Process, error)
	// Delete deletes keys.
	Delete(ctx context.Context, address string, keys []journal.Entry) error
	// Flush empties the server.
	Flush(ctx context.Context, address string) error
}

// Config says what a cluster is made of. Router, Sources and Prober are required.
type Config struct {
	// Router is this router's name, unique among the routers and stable across restarts.
	Router string
	// Sources say which servers there are; a server belongs to the first that names it.
	Sources []*discover.Watcher
	// Prober talks to the servers.
	Prober Prober
	// ProbeTimeout is how long a probe may take; default 250 ms.
	ProbeTimeout time.Duration
	// Parameters is what else the placement depends on, such as the distribution's name:
	// routers whose parameters differ do not count as having one list.
	Parameters string
	// Gossip is how to reach the other routers; nil means that there are none. Its Name
	// and Log are filled in.
	Gossip *gossip.Config
	// Mesh is instead of Gossip, where several clusters share it; Pool is then the name of
	// the one whose servers these are.
	Mesh *Mesh
	Pool string
	// Announce holds servers that this router tells the others of.
	Announce []discover.Server
	// Announced takes in what others tell, if it is not nil. One of Sources is to watch it.
	// Start then waits for a first server to be announced.
	Announced *discover.Announced
	// OnHint is called with hints of other routers, if it is not nil.
	OnHint func(b []byte)
	// Health, View and Journal hold the constants. View's Router, Boot, Alone and
	// Parameters are filled in.
	Health  health.Config
	View    view.Config
	Journal journal.Config
	// Readmit says what is done with servers that kept their memory while they were away.
	Readmit journal.Policy
	// FailoverAtOnce fails writes over as soon as this router cannot reach a server. Other
	// routers may still read the old value from it: that weakens the contract.
	FailoverAtOnce bool
	// Handover is how long the placement before is kept; default 5 min.
	Handover time.Duration
	// Log gets changes of state; nil means slog.Default().
	Log *slog.Logger

	// link replaces gossip in tests.
	link func(h gossip.Handler) link
}

// link carries messages to the other routers; [gossip.Gossip] is one.
type link interface {
	Send(b []byte)
	SendHint(b []byte)
	SendAnnounce(b []byte)
	Stats() gossip.Stats
	Joined() <-chan struct{}
	Members() []gossip.Member
	Refusing() []string
	SetKeys(keys [][]byte) error
	SetNote(note string) error
	Pause() error
	Resume() error
	Close(ctx context.Context) error
}

// withDefaults checks the configuration and fills in what may be left out.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Router == "":
		return c, errors.New("the router has no name")
	case len(c.Sources) == 0:
		return c, errors.New("there is no source of servers")
	case c.Prober == nil:
		return c, errors.New("there is no prober")
	}
	c.Handover = cmp.Or(c.Handover, 5*time.Minute)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 250*time.Millisecond)
	c.Health = c.Health.WithDefaults()
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.View.Router = c.Router
	c.View.Parameters = c.Parameters
	c.View.Alone = c.Gossip == nil && c.Mesh == nil && c.link == nil
	return c, nil
}
