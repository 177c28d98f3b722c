// Package fleet models routers before memcached servers in virtual time: what bounded load, spilling
// and copies do to load, hit ratio and latency. The routers use the product's own bound, placement and
// hot keys; servers, wires, clients and the origin behind the cache are models.
//
// A server does one thing at a time, each in constant time, and drops what nobody waits for any more. It
// keeps its most recently used items. Clients read, and on a miss ask the origin and set what it
// says; some requests write. Nobody checks health, so that what is seen is the bound's work alone.
//
// Everything is slower than in a real fleet by the same factor: one of a hundred thousand requests a second and
// server in 10 us, over wires of 120 us, for millions of keys, behaves alike.
package fleet

import "time"

// Policy is how routers choose a server for a read.
type Policy string

// The policies.
const (
	None Policy = "no bound"   // the key's home
	Any  Policy = "spill any"  // the home within its bound, then the next candidates with room, any key
	Hot  Policy = "spill hot"  // the same for keys that the detector calls hot; others stay at home
	Auto Policy = "spill auto" // hot keys as with Hot, others when the home has twice its bound in flight
	Walk Policy = "ring walk"  // as HAProxy with hash-balance-factor: all requests, along a ring, no copies known
)

// Config is one experiment.
type Config struct {
	Policy  Policy
	Routers int
	Load    float64 // gets, as a share of what all servers together can do at full speed
	Slow    int     // how many times slower the last server is; 1 is not
	Depth   int     // candidates after the home
	Floor   int     // of each router's bound
	Writes  float64 // writes for each get
	Cached  float64 // share of the keys that fit into all servers together
	Seed    uint64
	// WarmUp is how long the fleet works before anything is counted, and Measured how long after.
	WarmUp, Measured time.Duration
}

// The model's clock.
const (
	service   = 250 * time.Microsecond // of a get or a set at a server
	quick     = service / 2            // of a delete or an add that a router sends along with others
	wire      = 3 * time.Millisecond   // there and back
	origin    = 20 * time.Millisecond  // what the client needs for a value that the cache has not
	timeout   = time.Second
	copyTTL   = 10 * time.Second
	tick      = 100 * time.Millisecond // of the hot keys' collector
	perServer = float64(time.Second / service)
)

// perMille is c of the bound, in thousandths, and of the ring walk.
const perMille = 1250
