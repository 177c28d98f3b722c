package mcrouter

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Plan is what of ours comes closest to a configuration of mcrouter.
type Plan struct {
	// Pools are those that routes lead to, and their parts. Several may be of one of mcrouter's, used in different ways.
	Pools []*Pool
	// Routes are sorted as the file has them; the longest prefix decides.
	Routes []Route
	// FailoverTTL bounds the life of what spare servers are written, in seconds; 0 means that nothing is said of it.
	FailoverTTL int64
	// Notes say what there is no counterpart for, and what is another than it was, by line.
	Notes []Note
}

// Note says something of a value in the file.
type Note struct {
	Line int
	Path string // such as pools.main.qos
	Text string
}

// Pool is one of our pools.
type Pool struct {
	Of             string // the name of mcrouter's
	Servers        []string
	Weights        []int  // of the servers; nil if each is 1
	Distribution   string // empty if there is none that places keys so: then another one may be taken, and keys move
	Seed           string
	Timeout        time.Duration // 0 means that nothing is said of it, as with the next
	ConnectTimeout time.Duration
	TLS            bool
	Failover       *Pool // whose servers take over; nil for none
	WarmUp         *Pool // that is asked for what is missing; nil for none
	SplitOver      int64 // the length in bytes from which values are stored in parts; 0 means never
	Copies         int   // on how many servers each item lives; 0 is one

	keeps bool // the routing prefix of keys
	use   use  // what it was made of; none where each item is on all servers
}

// HomeIn tells by mcrouter's own rules where a key without routing prefix is in one of the pools. The error is as of [Config.Home].
func (c *Config) HomeIn(p *Pool, key string) (Home, error) {
	if p.use.pool == nil {
		return Home{p.Servers, p.Servers, key}, nil
	}
	server, err := c.place(p.use, key)
	return Home{[]string{server}, []string{server}, key}, err
}

// Share is a share of the keys for another pool; none if Pool is nil.
type Share struct {
	Pool    *Pool
	Percent float64
}

// Route is one of our routes.
type Route struct {
	Prefix   string
	Pool     *Pool // nil if Deny is set
	Deny     bool
	ReadOnly bool
	TTLCap   int64 // in seconds; 0 means no bound
	Strip    bool
	Add      string
	Split    Share
	Shadow   Share
}

// maxSteps bounds the handles that are looked at, which names can make many of.
const maxSteps = 1 << 16

// planner makes a plan.
type planner struct {
	*Config
	maxCopies int
	steps     int
	pools     map[string]*Pool // by what makes them different
	plan      *Plan
	noted     map[Note]bool
}

// Plan returns what comes closest with us, where an item can be on so many servers at most.
func (c *Config) Plan(maxCopies int) (*Plan, error) {
	p := &planner{Config: c, maxCopies: maxCopies, pools: make(map[string]*Pool), plan: new(Plan), noted: make(map[Note]bool)}
	for i := range c.selectors {
		if err := p.addRoutes(&c.selectors[i]); err != nil {
			return nil, err
		}
	}
	p.collectPools()
	p.noteUnseen(c.root)
	slices.SortStableFunc(p.plan.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	return p.plan, nil
}

// addRoutes adds the routes of a selector.
func (p *planner) addRoutes(s *selector) error {
	add := func(prefix string, v *value) error {
		h, err := p.one(v)
		if err != nil {
			return err
		}
		o, err := p.outcome(h, 0)
		if err != nil {
			return err
		}
		if o.pool == nil {
			p.note(v, "every request is answered with SERVER_ERROR route denies key")
		}
		for _, r := range s.renamed(prefix, o) {
			p.addRoute(s, r, o)
		}
		return nil
	}
	for _, policy := range s.policies {
		if err := add(policy.prefix, policy.handle); err != nil {
			return err
		}
	}
	if s.wildcard == nil {
		return nil
	}
	return add("", s.wildcard)
}

// addRoute adds a route for keys without a routing prefix, and for each one that they may have.
func (p *planner) addRoute(s *selector, r Route, o outcome) {
	r.Pool, r.Deny, r.ReadOnly, r.TTLCap, r.Split, r.Shadow = o.pool, o.pool == nil, o.readOnly, o.ttl, o.split, o.shadow
	if r.Deny {
		r = Route{Prefix: r.Prefix, Deny: true}
	}
	if s.usual {
		p.plan.Routes = append(p.plan.Routes, r)
	}
	if !p.prefixed {
		return
	}
	for _, alias := range s.aliases {
		p.plan.Routes = append(p.plan.Routes, r.behind(alias))
	}
}

// behind is the route for keys with a routing prefix before what they begin with. Servers do not see it, unless their pool keeps it.
func (r Route) behind(alias string) Route {
	renames := r.Strip || r.Add != ""
	known := r.Add // how their name begins
	if !r.Strip {
		known += r.Prefix
	}
	r.Prefix = alias + r.Prefix
	switch {
	case r.Deny || r.Pool.keeps && !renames:
	case r.Pool.keeps:
		r.Strip, r.Add = true, alias+known
	default:
		r.Strip, r.Add = true, known
	}
	return r
}

// renamed returns the prefixes that routes are for which make of keys with one prefix what a handle does, and how.
func (s *selector) renamed(prefix string, o outcome) (all []Route) {
	own := func(longer string) { // keys that have a longer prefix, but no other handle
		if p, _ := s.longest(longer); p == prefix && longer != prefix {
			all = append(all, Route{Prefix: longer})
		}
	}
	ensure := o.ensure
	if o.replaces && strings.HasPrefix(prefix, o.replace) {
		return []Route{{Prefix: prefix, Strip: prefix != "", Add: ensure + prefix[len(o.replace):]}}
	}
	if o.replaces && strings.HasPrefix(o.replace, prefix) {
		if own(o.replace); len(all) > 0 {
			all[0].Strip, all[0].Add = true, ensure
		}
	}
	switch {
	case strings.HasPrefix(prefix, ensure):
		return append(all, Route{Prefix: prefix})
	case strings.HasPrefix(ensure, prefix) && ensure != o.replace:
		own(ensure)
	}
	return append(all, Route{Prefix: prefix, Add: ensure})
}

// collectPools lists the pools that are used, in the order in which routes come to them.
func (p *planner) collectPools() {
	seen := make(map[*Pool]bool)
	var add func(pool *Pool)
	add = func(pool *Pool) {
		if pool == nil || seen[pool] {
			return
		}
		seen[pool] = true
		p.plan.Pools = append(p.plan.Pools, pool)
		add(pool.Failover)
		add(pool.WarmUp)
	}
	for _, r := range p.plan.Routes {
		add(r.Pool)
		add(r.Split.Pool)
		add(r.Shadow.Pool)
	}
}
