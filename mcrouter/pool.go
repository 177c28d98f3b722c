package mcrouter

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"cacherouter/compat"
)

// pool is one of mcrouter's pools.
type pool struct {
	name    string
	at      *value   // where it stands
	chain   []*value // it, and those whose fields it inherits
	servers []server
	weights []float64 // nil if there are none
}

// server is one of a pool.
type server struct {
	address  string // host:port, or unix: and a path
	protocol string // empty if it says none
	secured  bool   // it is spoken to by TLS
}

// hash is how keys are hashed over the servers of a pool.
type hash struct {
	kind    string // Ch3 …
	salt    string
	weights []float64
}

// use is a pool with a way to place keys on it.
type use struct {
	pool *pool
	hash hash
}

// take returns a field of a pool, its own or inherited.
func (p *pool) take(name string) *value {
	for _, v := range p.chain {
		if f := v.take(name); f != nil {
			return f
		}
	}
	return nil
}

// pool reads a pool: a name, or an object that has one.
func (c *Config) pool(v *value) (*pool, error) {
	v.see()
	name, at := v.text, v
	if v.kind == object {
		var err error
		if name, err = v.get("name").string(""); err != nil || name == "" {
			return nil, v.fault("a pool without name")
		}
	} else if v.kind != text {
		return nil, v.fault("is %s, want the name of a pool, or an object", v.kind)
	}
	if p := c.pools[name]; p != nil {
		return p, nil
	}
	if listed := c.root.take("pools").get(name); listed != nil {
		at = listed
	}
	p := &pool{name: name, at: at}
	if at.kind != object {
		return nil, v.fault("there is no pool %q", name)
	}
	if err := p.inherit(c, at); err != nil {
		return nil, err
	}
	if err := p.readServers(); err != nil {
		return nil, err
	}
	c.pools[name] = p
	return p, nil
}

// inherit finds those whose fields the pool has where it says nothing itself.
func (p *pool) inherit(c *Config, v *value) error {
	for {
		v.see()
		v.get("name").see()
		p.chain = append(p.chain, v)
		from := v.take("inherit")
		if from == nil {
			return nil
		}
		name, err := from.string("")
		if err != nil {
			return err
		}
		next := c.root.get("pools").get(name)
		switch {
		case !next.is(object):
			return from.fault("there is no pool %q", name)
		case slices.Contains(p.chain, next):
			return from.fault("goes round in a circle")
		}
		v = next
	}
}

func (p *pool) readServers() error {
	servers := p.take("servers")
	if !servers.is(list) {
		return p.at.fault("the pool has no list of servers")
	}
	port, err := p.take("port_override").int(0)
	if err != nil {
		return err
	}
	for _, v := range servers.items {
		v.see()
		text, err := v.string("")
		if err != nil {
			return v.fault("a server is %s: only addresses have a counterpart", v.kind)
		}
		s, wrong := readServer(text, port)
		if wrong != "" {
			return v.fault("server %q %s", text, wrong)
		}
		p.servers = append(p.servers, s)
	}
	p.weights, err = readWeights(p.take("weights"), len(p.servers))
	return err
}

// readServer reads host:port:protocol:security:compression, all but the first of which may be missing from behind.
func readServer(s string, port int64) (r server, wrong string) {
	host, rest := s, ""
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		host, rest, _ = strings.Cut(path, ":")
		r.address = "unix:" + host
	} else {
		own := ""
		if strings.HasPrefix(s, "[") {
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return r, "lacks a bracket"
			}
			host, rest = s[:end+1], strings.TrimPrefix(s[end+1:], ":")
		} else {
			host, rest, _ = strings.Cut(s, ":")
		}
		own, rest, _ = strings.Cut(rest, ":")
		if port != 0 {
			own = strconv.FormatInt(port, 10)
		}
		if n, err := strconv.ParseUint(own, 10, 16); err != nil || n == 0 {
			return r, "is not host:port"
		}
		r.address = host + ":" + own
	}
	if host == "" || host == "[]" {
		return r, "has no host"
	}
	parts := append(strings.Split(rest, ":"), "")
	r.protocol = parts[0]
	r.secured = parts[1] != "" && parts[1] != "plain"
	return r, ""
}

// readWeights reads weights from 0 to 1. Those that are missing are 0.5.
func readWeights(v *value, n int) (weights []float64, err error) {
	if v == nil {
		return nil, nil
	}
	if v.kind != list {
		return nil, v.fault("is %s, want a list of weights", v.kind)
	}
	for _, item := range v.items[:min(n, len(v.items))] {
		item.see()
		w, err := item.float(0)
		if err != nil || !(w >= 0 && w <= 1) {
			return nil, item.fault("is no weight from 0 to 1")
		}
		weights = append(weights, w)
	}
	for len(weights) < n {
		weights = append(weights, 0.5)
	}
	return weights, nil
}

// use reads which pool a PoolRoute or HashRoute is about, and how keys are placed there. It is false for what is not about one pool.
func (c *Config) use(h handle) (u use, ok bool, err error) {
	of, how := h.body, h.field("hash")
	switch {
	case h.kind == "HashRoute":
		of, how = c.hashed(h)
		if of == nil {
			return u, false, nil
		}
	case h.kind != "PoolRoute" && h.kind != "SaltedFailoverRoute":
		return u, false, nil
	case h.body.is(object):
		of = h.body.take("pool")
	}
	if of == nil {
		return u, false, h.at.fault("%s without pool", h.kind)
	}
	if u.pool, err = c.pool(of); err != nil {
		return u, false, err
	}
	u.hash, err = u.pool.readHash(how)
	return u, true, err
}

// hashed returns the pool whose servers are all that a HashRoute has, and its own description of the hash; nil if they are not one pool's.
func (c *Config) hashed(h handle) (of, how *value) {
	children, err := c.children(h, "children")
	if err != nil || len(children) != 1 || children[0].kind != "Pool" {
		return nil, nil
	}
	h.field("children").seeAll()
	if h.body.is(object) {
		how = h.body
	}
	return children[0].body, how
}

// readHash reads the description of a hash: a name, or an object with options.
func (p *pool) readHash(v *value) (h hash, err error) {
	v.see()
	h.kind, h.weights = "Ch3", p.weights
	if p.weights != nil {
		h.kind = "WeightedCh3"
	}
	if v.is(text) {
		h.kind = v.text
	} else if v.is(object) {
		if h.kind, err = v.take("hash_func").string(h.kind); err != nil {
			return h, err
		}
		if h.salt, err = v.take("salt").string(""); err != nil {
			return h, err
		}
		if own := v.take("weights"); own != nil {
			if h.weights, err = readWeights(own, len(p.servers)); err != nil {
				return h, err
			}
		}
	}
	even := !slices.ContainsFunc(h.weights, func(w float64) bool { return w != 1 })
	if h.kind == "WeightedCh3" && len(h.weights) > 0 && even {
		h.kind = "Ch3" // which it comes to
	}
	if h.kind != "WeightedCh3" {
		h.weights = nil
	}
	return h, nil
}

// distributions are ours for mcrouter's hash functions.
var distributions = map[string]string{"Ch3": "mcrouter-ch3", "Crc32": "mcrouter-crc32", "WeightedCh3": "mcrouter-weighted-ch3"}

// wholeWeight is what mcrouter's weight 1 is with us.
const wholeWeight = 10000

// distribution returns the name of ours for the hash, and the weights of the servers if they differ; empty if there is none that places keys so.
func (h *hash) distribution() (name string, weights []int) {
	for _, w := range h.weights {
		whole := math.Round(w * wholeWeight)
		if whole < 1 || whole/wholeWeight != w {
			return "", nil
		}
		weights = append(weights, int(whole))
	}
	return distributions[h.kind], weights
}

// odd says what of the hash it is that there is no distribution for, if its name does not.
func (h *hash) odd() string {
	if distributions[h.kind] == "" {
		return ""
	}
	return " with a weight of 0, or one of more than four digits,"
}

// placement returns where keys are on the pool's servers; nil if that is not known of its hash function.
func (u *use) placement() (*compat.Placement, error) {
	name, weights := u.hash.distribution()
	if len(u.pool.servers) == 1 {
		name, weights = distributions["Ch3"], nil
	}
	if name == "" {
		return nil, nil
	}
	config := compat.Config{Distribution: name, Seed: u.hash.salt}
	for i, s := range u.pool.servers {
		config.Servers = append(config.Servers, compat.Server{Addr: s.address, Weight: 1})
		if weights != nil {
			config.Servers[i].Weight = weights[i]
		}
	}
	return compat.New(config)
}
