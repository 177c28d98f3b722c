package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cacherouter/memproto"
	"cacherouter/router"

	"go.yaml.in/yaml/v3"
)

// routeConfig is a line of the table of routes.
type routeConfig struct {
	Prefix   string   `yaml:"prefix" doc:"What the keys begin with; empty means all that no other route has. The longest prefix that fits decides, in whatever order they stand."`
	Pool     string   `yaml:"pool" doc:"The name of their pool."`
	Deny     bool     `yaml:"deny" doc:"Answer every request on such a key with SERVER_ERROR route denies key."`
	ReadOnly bool     `yaml:"read_only" doc:"Answer what changes items, or their time to live, with SERVER_ERROR route is read only."`
	TTLCap   duration `yaml:"ttl_cap" doc:"How long what is stored or touched lives at most; whole seconds, 0s means no bound."`
	Strip    bool     `yaml:"strip" doc:"Take the prefix off the key before a server sees it. The client is answered about its own key."`
	Add      string   `yaml:"add" doc:"What is put before the key then."`

	Rate       float64 `yaml:"rate" doc:"Requests a second by this route, of all loops together, a get of several keys counted by its keys; more are answered with SERVER_ERROR route is over its rate. 0 means no bound."`
	Burst      int     `yaml:"burst" doc:"How many may come at once; 0 means as many as the rate is in 100 ms."`
	Concurrent int     `yaml:"concurrent" doc:"Requests in flight by this route; more are answered with SERVER_ERROR route has too many requests in flight. 0 means no bound."`
	Priority   string  `yaml:"priority" doc:"low, normal or high: which requests the pool sheds first; see pool.shed. Empty means normal."`

	Split  splitConfig  `yaml:"split"`
	Shadow shadowConfig `yaml:"shadow"`

	line int // in its file
}

// splitConfig names another pool for a share of a route's keys.
type splitConfig struct {
	Pool    string  `yaml:"pool" doc:"Another pool, that a share of the keys goes to. Which keys they are their hashes say."`
	Percent float64 `yaml:"percent" doc:"That share, 0 to 100. Keys that are in it stay while it grows."`
}

// shadowConfig names a pool that is to see a share of a route's requests.
type shadowConfig struct {
	Pool    string  `yaml:"pool" doc:"Another pool, that sees the requests on a share of the keys, too, and for whose answers nobody waits. Which keys they are their hashes say."`
	Percent float64 `yaml:"percent" doc:"That share, 0 to 100. Keys that are in it stay while it grows."`
	Compare bool    `yaml:"compare" doc:"Compare the answers to reads with those of the route's pool, count what is equal and what is not, and log one key a second where they differ."`
}

func (s *shadowConfig) share() *splitConfig { return &splitConfig{s.Pool, s.Percent} }

// check says what is wrong with it.
func (s *shadowConfig) check() error {
	if s.Pool == "" && s.Compare {
		return errors.New("says no pool to compare with")
	}
	return s.share().check()
}

func (s *splitConfig) check() error {
	switch {
	case !(s.Percent >= 0 && s.Percent <= 100):
		return fmt.Errorf("percent %v is not between 0 and 100", s.Percent)
	case s.Pool == "" && s.Percent != 0:
		return errors.New("says no pool")
	}
	return nil
}

func (s *splitConfig) asRouted() router.Split {
	return router.Split{Pool: s.Pool, Share: s.Percent / 100}
}

// checkOthers checks the pools that a route names beside its own.
func (r *routeConfig) checkOthers(c *config) error {
	own, err := c.one(r.Pool)
	if err != nil {
		return fmt.Errorf("the route for %s: %w", r.text(), err)
	}
	for field, name := range map[string]string{"split": r.Split.Pool, "shadow": r.Shadow.Pool} {
		if name == "" {
			continue
		}
		other, err := c.one(name)
		if other == own {
			err = errors.New("is the pool of the route itself")
		}
		if err != nil {
			return fmt.Errorf("the route for %s: %s: %w", r.text(), field, err)
		}
	}
	return nil
}

// UnmarshalYAML reads a route and notes where it stands.
func (r *routeConfig) UnmarshalYAML(n *yaml.Node) error {
	r.line = n.Line
	type plain routeConfig // without this method
	return strictly(n, (*plain)(r))
}

// text is the route's prefix for people.
func (r *routeConfig) text() string {
	if r.Prefix == "" {
		return "all other keys"
	}
	return fmt.Sprintf("%q", r.Prefix)
}

// says is what the route says beside its prefix, for people.
func (r *routeConfig) says() string {
	if r.Deny {
		return "denied"
	}
	s := "pool " + r.Pool
	if r.ReadOnly {
		s += ", read only"
	}
	if r.TTLCap > 0 {
		s += fmt.Sprintf(", for %v at most", r.TTLCap)
	}
	if r.Strip {
		s += ", prefix off"
	}
	if r.Split.Pool != "" {
		s += fmt.Sprintf(", %v %% of the keys to pool %s", r.Split.Percent, r.Split.Pool)
	}
	if r.Shadow.Pool != "" {
		s += fmt.Sprintf(", those on %v %% of the keys seen by pool %s", r.Shadow.Percent, r.Shadow.Pool)
		if r.Shadow.Compare {
			s += ", which is compared"
		}
	}
	if r.Add != "" {
		s += fmt.Sprintf(", %q before it", r.Add)
	}
	return s + r.quotaText()
}

// check says what is wrong with the route by itself.
func (r *routeConfig) check() error {
	odd := func(c rune) bool { return c <= ' ' || c == 0x7f }
	switch {
	case len(r.Prefix) > memproto.MaxKey:
		return fmt.Errorf("the prefix has %d bytes, more than a key may have", len(r.Prefix))
	case strings.ContainsFunc(r.Prefix, odd) || strings.ContainsFunc(r.Add, odd):
		return errors.New("a space or a control character, which no key has")
	case len(r.Add) >= memproto.MaxKey:
		return fmt.Errorf("add has %d bytes, which leaves no room for a key", len(r.Add))
	case time.Duration(r.TTLCap)%time.Second != 0:
		return fmt.Errorf("ttl_cap %v is not a number of whole seconds", r.TTLCap)
	case r.Strip && r.Prefix == "":
		return errors.New("strip takes a prefix off, and there is none")
	case r.Split.check() != nil:
		return fmt.Errorf("split: %w", r.Split.check())
	case r.Shadow.check() != nil:
		return fmt.Errorf("shadow: %w", r.Shadow.check())
	case r.Deny && (r.Pool != "" || r.Split.Pool != "" || r.Shadow.Pool != "" || r.ReadOnly || r.TTLCap > 0 || r.Strip || r.Add != "" || r.quotaText() != ""):
		return errors.New("deny leaves nothing else to say: want it alone")
	}
	return r.checkQuota()
}

// checkRoutes checks a table of routes.
func (c *config) checkRoutes(routes []routeConfig, field string) error {
	lines := make(map[string]int)
	for i := range routes {
		r := &routes[i]
		err := r.check()
		switch first, twice := lines[r.Prefix]; {
		case err != nil:
			err = fmt.Errorf("the route for %s: %w", r.text(), err)
		case twice:
			err = fmt.Errorf("the route for %s is there twice, first in line %d", r.text(), first)
		case r.Deny:
		case r.Pool == "" && len(c.Pools) > 1:
			err = fmt.Errorf("the route for %s says no pool", r.text())
		default:
			err = r.checkOthers(c)
		}
		if err != nil {
			return badField(&serverError{r.line, err}, field)
		}
		lines[r.Prefix] = r.line
	}
	return nil
}

// routes returns a table of routes as the router wants it.
func (c *config) routes(table []routeConfig) (all []router.Route) {
	for _, r := range table {
		to := router.Route{Prefix: r.Prefix, Deny: r.Deny, ReadOnly: r.ReadOnly, MaxTTL: time.Duration(r.TTLCap), Strip: r.Strip, Add: r.Add, Quota: r.quota(), Priority: priorities[r.Priority]}
		if p, _ := c.one(r.Pool); !r.Deny { // checked
			to.Pool, to.Split, to.Shadow, to.Compare = p.name, r.Split.asRouted(), r.Shadow.share().asRouted(), r.Shadow.Compare
		}
		all = append(all, to)
	}
	return all
}

// tables returns the tables of routes: that of all, and those of listeners.
func (c *config) tables() [][]routeConfig {
	tables := [][]routeConfig{c.Routes}
	for _, l := range c.Listen {
		tables = append(tables, l.Routes)
	}
	return tables
}

// routed returns the names of the pools that routes lead to.
func (c *config) routed() map[string]bool {
	used := make(map[string]bool)
	for _, table := range c.tables() {
		for _, r := range table {
			if p, err := c.one(r.Pool); err == nil && !r.Deny {
				used[p.name], used[r.Split.Pool], used[r.Shadow.Pool] = true, true, true
			}
		}
	}
	return used
}

// doubts returns what is no fault of the routes, but most probably not meant.
func (c *config) doubts() (all []string) {
	for i, table := range c.tables() {
		rest := slices.ContainsFunc(table, func(r routeConfig) bool { return r.Prefix == "" })
		switch {
		case rest || len(table) == 0:
		case i == 0:
			all = append(all, "routes: no route for the rest of the keys, which are answered with SERVER_ERROR no route for key")
		default:
			all = append(all, fmt.Sprintf("listen: %s: no route for the rest of the keys, which are answered with SERVER_ERROR no route for key", c.Listen[i-1].Address))
		}
	}
	for _, table := range c.tables() {
		for _, r := range table {
			if name := c.sharedByShadow(&r); name != "" {
				all = append(all, fmt.Sprintf("the route for %s: shadow: pool %s has server %s of pool %s, where it does twice what clients do once", r.text(), r.Shadow.Pool, name, r.Pool))
			}
		}
	}
	used := c.routed()
	for _, p := range c.served() {
		if len(c.Pools) > 1 && len(c.Routes) > 0 && !used[p.name] {
			all = append(all, fmt.Sprintf("pools: %s: no route leads to it", p.name))
		}
	}
	return all
}

// sharedByShadow returns a server that is in the pool of a route and in the one that sees its requests,
// empty if there is none.
func (c *config) sharedByShadow(r *routeConfig) string {
	own, seeing := c.Pools[r.Pool], c.Pools[r.Shadow.Pool]
	if own == nil || seeing == nil {
		return ""
	}
	for _, s := range own.all() {
		if slices.ContainsFunc(seeing.all(), func(o serverConfig) bool { return o.Address == s.Address }) {
			return s.Address
		}
	}
	return ""
}

// longestFirst sorts routes so that the first one that fits a key is its route.
func longestFirst(routes []routeConfig) []routeConfig {
	return slices.SortedStableFunc(slices.Values(routes), func(a, b routeConfig) int { return cmp.Compare(len(b.Prefix), len(a.Prefix)) })
}

// targets returns a table of routes as the router goes by it.
func (c *config) targets(table []routeConfig) (*router.Routes, error) {
	var names []string
	for _, p := range c.served() {
		names = append(names, p.name)
	}
	targets, err := router.NewRoutes(c.routes(table), names)
	return targets, badField(err, "routes")
}
