package fleet

import (
	"math/rand/v2"
	"time"
)

// fleet is a run.
type fleet struct {
	Config
	*World
	clock
	rand    *rand.Rand
	routers []*router
	servers []*server
	total   int // calls in flight

	issued    []uint32 // by key, the version that the origin has
	completed []uint32 // by key, the version whose write was answered
	out       tally
}

// server is a model of a memcached.
type server struct {
	cache    *cache
	slow     time.Duration
	free     time.Duration // when it has done all it has to
	inFlight int
}

// Run lets a fleet work and returns what was seen after it had warmed up.
func Run(w *World, c Config) (Outcome, error) {
	f := &fleet{Config: c, World: w, rand: rand.New(rand.NewPCG(c.Seed, 3))}
	f.out.from = c.WarmUp
	f.issued, f.completed = make([]uint32, len(w.law)), make([]uint32, len(w.law))
	for range w.servers {
		room := int(c.Cached * float64(len(w.law)) / float64(w.servers))
		f.servers = append(f.servers, &server{cache: newCache(len(w.law), room), slow: 1})
	}
	f.servers[w.servers-1].slow = time.Duration(c.Slow)
	for i := range c.Routers {
		r, err := newRouter(f, uint64(i))
		if err != nil {
			return Outcome{}, err
		}
		f.routers = append(f.routers, r)
	}
	f.fill()
	f.run()
	return f.out.outcome(w.servers), nil
}

// fill puts every key at its home, the most popular last.
func (f *fleet) fill() {
	for key := len(f.law) - 1; key >= 0; key-- {
		home := f.order(int32(key))[0]
		f.servers[home].cache.set(int32(key), 0, 0)
	}
}

// order returns a key's servers, home first.
func (f *fleet) order(key int32) []uint8 {
	all := f.spill
	if f.Policy == Walk {
		all = f.walk
	}
	n := f.World.servers
	return all[int(key)*n : int(key)*n+n]
}

func (f *fleet) run() {
	arrival, nextTick := time.Duration(0), tick
	gap := float64(time.Second) / (f.Load * perServer * float64(f.World.servers))
	for arrival < f.WarmUp+f.Measured {
		arrival += time.Duration(f.rand.ExpFloat64() * gap)
		for ; nextTick < arrival; nextTick += tick {
			f.passTo(nextTick)
			for _, r := range f.routers {
				r.collect()
			}
		}
		f.passTo(arrival)
		f.arrive()
	}
}

func (f *fleet) passTo(t time.Duration) {
	for c := f.next(t); c != nil; c = f.next(t) {
		c.router.ended(c)
	}
}

// arrive is a client's get, and with some probability another one's write.
func (f *fleet) arrive() {
	if f.now >= f.WarmUp {
		f.look()
	}
	r := f.routers[f.rand.IntN(len(f.routers))]
	key := int32(f.draw(f.rand))
	r.get(&call{key: key, began: f.now, need: f.completed[key]})
	if f.rand.Float64() < f.Writes {
		r := f.routers[f.rand.IntN(len(f.routers))]
		key := int32(f.draw(f.rand))
		f.issued[key]++
		r.write(key, f.issued[key])
	}
}

// look notes how uneven what is in flight is.
func (f *fleet) look() {
	most := 0
	for _, s := range f.servers {
		most = max(most, s.inFlight)
	}
	f.out.look(most, f.total, len(f.servers))
}

// send has a server work on a call, and sets when its router hears of it. What nobody would wait for
// until its turn comes, the server never sees: the connection is dropped.
func (f *fleet) send(c *call, server uint8, takes time.Duration) {
	s := f.servers[server]
	c.server = server
	s.inFlight++
	f.total++
	done := max(f.now+wire/2, s.free) + takes*s.slow
	if reply := done + wire/2; reply-f.now <= timeout {
		s.free = done
		f.set(reply, c)
		return
	}
	c.late = true
	f.set(f.now+timeout, c)
}

// received takes a call off what is in flight.
func (f *fleet) received(c *call) {
	f.servers[c.server].inFlight--
	f.total--
}
