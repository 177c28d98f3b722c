package fleet

import (
	"slices"
	"time"

	"cacherouter/bounded"
	"cacherouter/hotkey"
)

// call is one request of a router to a server, or a client's wait for the origin.
type call struct {
	kind    kind
	router  *router
	server  uint8
	rank    int // of the server among the key's candidates
	late    bool
	key     int32
	began   time.Duration // get, fetch: when the client asked
	need    uint32        // get: the version that was complete by then
	version uint32        // set, add: of the value
	epoch   uint32        // fetch: of the key, when it was sent
	write   *write        // set, erase: what it is a part of
}

type kind uint8

const (
	get   kind = iota
	fetch      // a get at home, as a copy was not there
	add        // of a copy
	set
	erase // a copy
	ask   // the client asks the origin
)

// write is a client's set, which is answered when home and the candidates have answered.
type write struct {
	missing int
	version uint32
	failed  bool
}

// router is a model of one of ours, or with Walk of an HAProxy.
type router struct {
	*fleet
	bound     *bounded.Bound // nil with None and Walk
	slots     slots          // Walk
	keys      *hotkey.Counter
	collector *hotkey.Collector
	sample    hotkey.Sample
	flights   map[int32][]*call // by key, the gets that wait for a fetch
	stripes   [4096]stripe      // by key
	scratch   []int
	suspended []time.Duration // by server, until when copies there are not read
}

// stripe says whether keys were written through this router.
type stripe struct {
	writing int
	epoch   uint32
}

func newRouter(f *fleet, seed uint64) (*router, error) {
	r := &router{fleet: f, slots: make(slots, f.World.servers), keys: hotkey.NewCounter(seed), flights: map[int32][]*call{}, suspended: make([]time.Duration, f.World.servers)}
	var err error
	// The least rate of a hot key is for fleets of real speed. The shares are what counts.
	if r.collector, err = hotkey.NewCollector(hotkey.Config{Servers: f.World.servers, MinRate: 1}); err != nil {
		return nil, err
	}
	if f.Policy != None && f.Policy != Walk {
		c := bounded.Default(slices.Repeat([]int{1}, f.World.servers))
		c.PerMille, c.Depth, c.Floor = perMille, f.Depth, f.Floor
		if r.bound, err = bounded.New(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *router) collect() {
	r.keys.Sample(&r.sample, r.now)
	r.collector.Collect([]*hotkey.Sample{&r.sample}, r.now)
}

// get sends a client's read to the server that the policy chooses.
func (r *router) get(c *call) {
	c.kind, c.router = get, r
	order := r.order(c.key)
	hash := r.hashes[c.key]
	switch r.Policy {
	case Walk:
		c.rank = r.slots.walk(order)
	case Any:
		c.rank = r.take(order)
	case Hot, Auto:
		r.keys.Touch(hash, r.names[c.key])
		home := int(order[0])
		switch {
		case r.collector.Heat().Level(hash) != hotkey.Cold, r.Policy == Auto && r.bound.Beyond(home, 2):
			c.rank = r.take(order)
		default:
			r.count(order[0])
		}
	}
	r.send(c, order[c.rank], service)
}

func (r *router) take(order []uint8) (rank int) {
	r.scratch = r.scratch[:0]
	barred := uint32(0)
	for i, s := range order[:r.Depth+1] {
		r.scratch = append(r.scratch, int(s))
		if i > 0 && r.now < r.suspended[s] {
			barred |= 1 << i
		}
	}
	rank, _ = r.bound.Take(r.scratch, barred, 1)
	return rank
}

// count counts a call that only this server may take.
func (r *router) count(server uint8) {
	if r.bound != nil {
		r.bound.Add(int(server), 1)
	}
}

// write sets a key at home, and then erases its copies.
func (r *router) write(key int32, version uint32) {
	w := &write{missing: 1, version: version}
	s := r.stripe(key)
	s.writing++
	s.epoch++
	order := r.order(key)
	rank := 0
	if r.Policy == Walk {
		rank = r.slots.walk(order)
	} else {
		r.count(order[0])
	}
	r.send(&call{kind: set, router: r, rank: rank, key: key, version: version, write: w}, order[rank], service)
}

func (r *router) stripe(key int32) *stripe { return &r.stripes[key%int32(len(r.stripes))] }

// ended takes the end of a call: a reply, or none in time.
func (r *router) ended(c *call) {
	if c.kind == ask {
		r.write(c.key, r.issued[c.key])
		return
	}
	r.received(c)
	if r.bound != nil {
		r.bound.Release(int(c.server), 1)
	} else if r.Policy == Walk {
		r.slots[c.server]--
	}
	switch c.kind {
	case get:
		r.gotten(c)
	case fetch:
		r.fetched(c)
	case add:
		r.added(c)
	case set, erase:
		r.written(c)
	}
}

// gotten is the answer to a read. A copy that is not there is fetched from home, once for all who ask.
func (r *router) gotten(c *call) {
	if c.late {
		r.out.failed(c)
		return
	}
	version, ok := r.servers[c.server].cache.get(c.key, r.now)
	r.out.spilled(c, ok)
	switch {
	case ok:
		r.out.hit(c, version, r.now)
	case c.rank == 0 || r.Policy == Walk:
		r.missed(c)
	default:
		waiting, flying := r.flights[c.key]
		r.flights[c.key] = append(waiting, c)
		if !flying {
			r.fetch(c.key)
		}
	}
}

func (r *router) fetch(key int32) {
	home, s := r.order(key)[0], r.stripe(key)
	c := &call{kind: fetch, router: r, key: key, epoch: s.epoch}
	if s.writing > 0 {
		c.epoch-- // what is read now may be overtaken: no copy
	}
	r.count(home)
	r.send(c, home, service)
}

func (r *router) fetched(c *call) {
	version, ok := r.servers[c.server].cache.get(c.key, r.now)
	fill := ok && !c.late && r.stripe(c.key).epoch == c.epoch
	filled := uint64(0) // a bit for each server
	for _, g := range r.flights[c.key] {
		switch {
		case c.late:
			r.out.failed(g)
		case ok:
			r.out.hit(g, version, r.now)
		default:
			r.missed(g)
		}
		if fill && filled>>g.server&1 == 0 {
			filled |= 1 << g.server
			r.count(g.server)
			r.send(&call{kind: add, router: r, key: c.key, version: version}, g.server, quick)
		}
	}
	delete(r.flights, c.key)
}

func (r *router) added(c *call) {
	cache := r.servers[c.server].cache
	if _, present := cache.get(c.key, r.now); !present && !c.late {
		cache.set(c.key, c.version, r.now+copyTTL)
	}
}

// missed tells a client, who asks the origin.
func (r *router) missed(c *call) {
	r.out.miss(c, r.now)
	r.set(r.now+origin, &call{kind: ask, router: r, key: c.key})
}

// written is the end of a part of a write. When home has answered the copies are erased, and then
// it is complete. A copy that could not be erased may be old, and is not read for as long as it may
// live. A write that home did not answer is an error, and promises nothing.
func (r *router) written(c *call) {
	cache := r.servers[c.server].cache
	switch {
	case c.kind == set:
		if c.late {
			c.write.failed = true
		} else {
			cache.set(c.key, c.version, 0)
		}
		r.erase(c)
	case c.late:
		r.suspended[c.server] = r.now + copyTTL
	default:
		cache.remove(c.key)
	}
	if c.write.missing--; c.write.missing > 0 {
		return
	}
	s := r.stripe(c.key)
	s.writing--
	s.epoch++
	if !c.write.failed {
		r.completed[c.key] = max(r.completed[c.key], c.write.version)
	}
}

func (r *router) erase(c *call) {
	if r.bound == nil {
		return
	}
	for _, s := range r.order(c.key)[1 : r.Depth+1] {
		c.write.missing++
		r.count(s)
		r.send(&call{kind: erase, router: r, key: c.key, write: c.write}, s, quick)
	}
}
