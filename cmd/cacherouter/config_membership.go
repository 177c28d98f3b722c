package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"time"

	"cacherouter/membership/damping"
	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
	"cacherouter/membership/view"
	"cacherouter/reactor"
)

// gossipConfig says how to reach the other routers.
type gossipConfig struct {
	Bind      string   `yaml:"bind" doc:"Address, host:port, on which routers talk to each other, by TCP and UDP; empty means that this router is alone. Usually port 11313."`
	Advertise string   `yaml:"advertise" doc:"The host:port that others are to use, if it is not bind."`
	Join      []string `yaml:"join" doc:"Addresses, host:port, of some other routers, itself not excluded; one that answers is enough. A name is resolved each time."`
	Cluster   string   `yaml:"cluster" doc:"Name of the fleet. Routers of other fleets are refused."`
	Keyring   string   `yaml:"keyring" doc:"File of keys for the gossip, read again when it changes: one a line, base64 of 16, 24 or 32 bytes. The first one encrypts, all decrypt. Empty means no encryption."`
	Expected  int      `yaml:"expected" doc:"How many routers there are. Fewer than half of them decide nothing, so a part of a fleet that starts alone does no harm. 0 means as many as are heard of."`
}

// membershipConfig says how servers are watched and what is done when they come and go.
// The reasons for the numbers are in docs/membership.md.
type membershipConfig struct {
	Enabled        bool          `yaml:"enabled" doc:"Whether servers are watched at all. false means that keys stay where they are placed, whatever happens to their servers."`
	FailoverWrites string        `yaml:"failover_writes" doc:"When writes whose server cannot be reached go to the next: agreed, when a quorum of the routers cannot reach it, or at_once, when this one cannot; others may then still read the old value from it."`
	FailoverTTL    duration      `yaml:"failover_ttl" doc:"How long what is written in place of a server that is away lives at most."`
	Handover       duration      `yaml:"handover" doc:"How long after a change of the placement a key that misses is asked of the server it lived on before; at least 5s."`
	Readmit        string        `yaml:"readmit" doc:"What becomes of a server that kept its memory and missed more than was noted: flush, or quarantine, which keeps it out until it is restarted."`
	MaxOutage      duration      `yaml:"max_outage" doc:"The length of an outage after which what was noted is not trusted."`
	JournalKeys    int           `yaml:"journal_keys" doc:"How many keys are noted for each server that misses writes."`
	JournalBytes   int           `yaml:"journal_bytes" doc:"How many bytes of keys are noted for each."`
	ProbeTimeout   duration      `yaml:"probe_timeout" doc:"How long a probe may take."`
	Health         healthConfig  `yaml:"health"`
	View           viewConfig    `yaml:"view"`
	Damping        dampingConfig `yaml:"damping"`
	Lists          listsConfig   `yaml:"lists"`
}

// healthConfig holds the constants of [health.Config] by their names.
type healthConfig struct {
	Fall        int      `yaml:"fall" doc:"Failures in a row that take a server out for this router."`
	Rise        int      `yaml:"rise" doc:"Good probes in a row that bring it back."`
	Interval    duration `yaml:"interval" doc:"Time between two probes."`
	Fast        duration `yaml:"fast" doc:"The same while a server is not up."`
	Dead        duration `yaml:"dead" doc:"How long a server must have failed to count as dead."`
	Window      duration `yaml:"window" doc:"How long requests count."`
	MinRequests int      `yaml:"min_requests" doc:"Requests within the window that it takes to judge errors and latency."`
	MaxErrors   int      `yaml:"max_errors" doc:"Share of errors, per mille, from which a server gets no reads."`
	Slow        int      `yaml:"slow" doc:"How many times the median latency is slow."`
	ErrorCost   duration `yaml:"error_cost" doc:"The latency that an error counts as."`
	Ejection    duration `yaml:"ejection" doc:"How long a server with too many errors gets no reads, times the number of such times in a row."`
	MaxEjected  int      `yaml:"max_ejected" doc:"Share of the servers, per mille, that this may happen to at a time; one always may."`
	Panic       int      `yaml:"panic" doc:"Share of the servers, per mille, that must not be down for health to count."`
	SlowStart   duration `yaml:"slow_start" doc:"How long the share of a server that returned grows, where there is a choice."`
	MinWeight   int      `yaml:"min_weight" doc:"Where it begins, per mille."`
	Aggression  float64  `yaml:"aggression" doc:"Above 1 it grows faster at first."`
	Pause       duration `yaml:"pause" doc:"How long this process must have stood still not to trust what it sees."`
	MaxLag      duration `yaml:"max_lag" doc:"Length of a loop's turn from which this router is too busy to judge others."`
	Settle      duration `yaml:"settle" doc:"How long it then abstains."`
}

// viewConfig holds the constants of [view.Config] by their names.
type viewConfig struct {
	Failover       duration `yaml:"failover" doc:"From agreeing that a server is away until all act on it."`
	Activation     duration `yaml:"activation" doc:"The same for changes of the placement."`
	Commit         duration `yaml:"commit" doc:"How long before that a change is no longer called off."`
	Steady         duration `yaml:"steady" doc:"How long a server whose keys were moved must have answered to get them back."`
	Beat           duration `yaml:"beat" doc:"Time between two messages of a router when nothing happens."`
	Fresh          duration `yaml:"fresh" doc:"How long a router counts as present after its last message."`
	Forget         duration `yaml:"forget" doc:"How long a router that vanished is still counted among all."`
	Patience       duration `yaml:"patience" doc:"How long a minority of the routers can hold up a new list, or the return of a server."`
	Pause          duration `yaml:"pause" doc:"How long this process must have stood still to decide nothing for a while."`
	Settle         duration `yaml:"settle" doc:"For how long."`
	MaxSkew        duration `yaml:"max_skew" doc:"How far this router's clock may be from the others' median."`
	ListAlarm      duration `yaml:"list_alarm" doc:"How long the routers' lists may differ before it is reported."`
	PlacementAlarm duration `yaml:"placement_alarm" doc:"How long placements made of one list may."`
	MaxOut         int      `yaml:"max_out" doc:"Share of the servers, per mille, whose keys may be moved because they are down; one always may."`
	MaxAway        int      `yaml:"max_away" doc:"Share of the servers, per mille, that may be failed over or out."`
	AwayPenalty    int      `yaml:"away_penalty" doc:"What failing over costs a server."`
	OutPenalty     int      `yaml:"out_penalty" doc:"What moving its keys costs it besides."`
}

// dampingConfig holds the constants of [damping.Config] by their names.
type dampingConfig struct {
	Off         bool     `yaml:"off" doc:"Whether servers that flap are not held back."`
	Suppress    int      `yaml:"suppress" doc:"Penalty from which a server stays out."`
	Reuse       int      `yaml:"reuse" doc:"Penalty below which it may come back."`
	HalfLife    duration `yaml:"half_life" doc:"How long a penalty takes to halve."`
	MaxSuppress duration `yaml:"max_suppress" doc:"How long the penalty alone may keep a server out."`
	Hold        duration `yaml:"hold" doc:"How long a server whose keys were moved stays out at least, doubled each time."`
	MaxHold     duration `yaml:"max_hold" doc:"How far that is doubled."`
	Forget      duration `yaml:"forget" doc:"How long a server must have stayed for its departures to be forgotten."`
}

// listsConfig says what is believed of the sources of servers.
type listsConfig struct {
	Every   duration `yaml:"every" doc:"Time between two looks at a file, or at DNS if it says nothing else."`
	Confirm int      `yaml:"confirm" doc:"Equal answers in a row that it takes to remove a server."`
	Over    duration `yaml:"over" doc:"Time that they must span."`
	Max     int      `yaml:"max" doc:"How many servers a source may name."`
	Keep    duration `yaml:"keep" doc:"How long a server stays after its last announcement."`
}

func defaultMembership() membershipConfig {
	m := membershipConfig{
		Enabled:        true,
		FailoverWrites: "agreed",
		FailoverTTL:    duration(time.Minute),
		Handover:       duration(5 * time.Minute),
		Readmit:        "flush",
		MaxOutage:      duration(10 * time.Minute),
		JournalKeys:    65536,
		JournalBytes:   8 << 20,
		ProbeTimeout:   duration(250 * time.Millisecond),
		Lists: listsConfig{
			Every:   duration(10 * time.Second),
			Confirm: 3,
			Over:    duration(30 * time.Second),
			Max:     1000,
			Keep:    duration(10 * time.Minute),
		},
	}
	h, v, d := health.Config{}.WithDefaults(), view.Config{}.WithDefaults(), damping.Config{}.WithDefaults()
	translate(&m.Health, &h)
	translate(&m.View, &v)
	translate(&m.Damping, &d)
	return m
}

// translate copies the fields that a section has to, or from, those of the same names that
// the constants of a package have.
func translate(to, from any) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	names := dst.Type()
	if src.NumField() < dst.NumField() {
		names = src.Type()
	}
	for i := range names.NumField() {
		name := names.Field(i).Name
		t, f := dst.FieldByName(name), src.FieldByName(name)
		t.Set(f.Convert(t.Type()))
	}
}

// constants returns what the sections say, as membership wants it.
func (m *membershipConfig) constants() (h health.Config, v view.Config, j journal.Config, p journal.Policy) {
	translate(&h, &m.Health)
	translate(&v, &m.View)
	translate(&v.Damping, &m.Damping)
	j = journal.Config{MaxKeys: m.JournalKeys, MaxBytes: m.JournalBytes}
	p = journal.Policy{MaxOutage: time.Duration(m.MaxOutage), Quarantine: m.Readmit == "quarantine"}
	return h, v, j, p
}

// minHandover is the least hand-over: routers do not switch at quite the same moment.
const minHandover = duration(5 * time.Second)

func (m *membershipConfig) validate() error {
	if err := positive(reflect.ValueOf(m).Elem(), "membership"); err != nil {
		return err
	}
	f := func(bad bool, err error, path ...string) error {
		if !bad {
			return nil
		}
		return badField(err, append([]string{"membership"}, path...)...)
	}
	return cmp.Or(
		f(m.FailoverWrites != "agreed" && m.FailoverWrites != "at_once", fmt.Errorf("%q is neither agreed nor at_once", m.FailoverWrites), "failover_writes"),
		f(m.Readmit != "flush" && m.Readmit != "quarantine", fmt.Errorf("%q is neither flush nor quarantine", m.Readmit), "readmit"),
		f(m.FailoverTTL < duration(time.Second), fmt.Errorf("%v is less than 1s", m.FailoverTTL), "failover_ttl"),
		f(m.Handover < minHandover, fmt.Errorf("%v is less than %v", m.Handover, minHandover), "handover"),
		f(m.View.Commit >= m.View.Activation, fmt.Errorf("%v is not less than activation", m.View.Commit), "view", "commit"),
		f(m.View.Beat*2 > m.View.Fresh, fmt.Errorf("%v is less than two beats", m.View.Fresh), "view", "fresh"),
		f(m.View.MaxOut > 1000, fmt.Errorf("%d is more than 1000 per mille", m.View.MaxOut), "view", "max_out"),
		f(m.View.MaxAway > 1000, fmt.Errorf("%d is more than 1000 per mille", m.View.MaxAway), "view", "max_away"),
		f(m.Health.MaxErrors > 1000, fmt.Errorf("%d is more than 1000 per mille", m.Health.MaxErrors), "health", "max_errors"),
		f(m.Health.MaxEjected > 1000, fmt.Errorf("%d is more than 1000 per mille", m.Health.MaxEjected), "health", "max_ejected"),
		f(m.Health.Panic > 1000, fmt.Errorf("%d is more than 1000 per mille", m.Health.Panic), "health", "panic"),
		f(m.Health.MinWeight > 1000, fmt.Errorf("%d is more than 1000 per mille", m.Health.MinWeight), "health", "min_weight"),
		f(m.Damping.Reuse >= m.Damping.Suppress, fmt.Errorf("%d is not less than suppress", m.Damping.Reuse), "damping", "reuse"),
	)
}

// positive refuses numbers that are not over 0, in a section and those in it: to the
// packages they belong to, 0 means the default.
func positive(section reflect.Value, path ...string) error {
	for i := range section.NumField() {
		v, at := section.Field(i), append(path[:len(path):len(path)], section.Type().Field(i).Tag.Get("yaml"))
		bad := false
		switch {
		case v.Kind() == reflect.Struct:
			if err := positive(v, at...); err != nil {
				return err
			}
		case v.CanInt():
			bad = v.Int() <= 0
		case v.CanFloat():
			bad = v.Float() <= 0
		}
		if bad {
			return badField(fmt.Errorf("%v is not over 0", v.Interface()), at...)
		}
	}
	return nil
}

func (g *gossipConfig) validate() error {
	if g.Bind == "" {
		for name, set := range map[string]bool{"advertise": g.Advertise != "", "join": len(g.Join) > 0, "keyring": g.Keyring != "", "expected": g.Expected > 0} {
			if set {
				return badField(errors.New("wants an address to bind, too"), "gossip", name)
			}
		}
		return nil
	}
	if err := checkHostPort(g.Bind); err != nil {
		return badField(err, "gossip", "bind")
	}
	if g.Advertise != "" {
		if err := checkHostPort(g.Advertise); err != nil {
			return badField(err, "gossip", "advertise")
		}
	}
	for _, a := range g.Join {
		if err := checkHostPort(a); err != nil {
			return badField(err, "gossip", "join")
		}
	}
	if g.Expected < 0 || g.Expected > 256 {
		return badField(fmt.Errorf("%d is not between 0 and 256", g.Expected), "gossip", "expected")
	}
	_, err := g.keys()
	return badField(err, "gossip", "keyring")
}

// checkHostPort accepts an address that is no unix socket.
func checkHostPort(a string) error {
	if network, _ := reactor.SplitAddress(a); network == "unix" {
		return fmt.Errorf("address %q is not host:port", a)
	}
	return checkAddress(a)
}

// keys reads the keyring, nil if there is none.
func (g *gossipConfig) keys() ([][]byte, error) {
	if g.Keyring == "" {
		return nil, nil
	}
	return readKeyring(g.Keyring)
}

// config returns what gossip wants to know.
func (g *gossipConfig) config() (gossip.Config, error) {
	keys, err := g.keys()
	if err != nil {
		return gossip.Config{}, badField(err, "gossip", "keyring")
	}
	return gossip.Config{Bind: g.Bind, Advertise: g.Advertise, Join: g.Join, Cluster: g.Cluster, Keys: keys}, nil
}

// routerName returns the router's name among the others.
func (c *config) routerName() string {
	if c.Name != "" {
		return c.Name
	}
	host, err := os.Hostname()
	if err != nil {
		host = "router"
	}
	for _, a := range []string{c.Admin, c.Listen[0].Address} {
		network, _ := reactor.SplitAddress(a)
		if _, port, err := net.SplitHostPort(a); err == nil && port != "0" && network != "unix" {
			return host + ":" + port
		}
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
