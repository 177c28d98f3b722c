//go:build linux

// Package load offers memcached requests to a target and measures how they are answered.
//
// The load is a closed loop, in which each connection sends a batch of requests, waits until the whole
// batch is answered and sends the next; or an open loop, in which requests are due at a fixed rate whether
// or not those before have been answered, and latency counts from when they were due. A closed loop asks a
// slow target less often, so its latencies are flattering (coordinated omission): it is for comparing
// targets, and for finding how much they can do.
//
// It is cheap on purpose, because it shares the machine with what it measures: connections are driven by a
// few event loops over epoll, a batch is one write, and nothing is allocated per request. Values are made from
// their key and the number of the write, so every reply is checked byte for byte.
package load

import (
	"errors"
	"fmt"
	"net"
	"time"

	"cacherouter/loadtest/workload"
)

// Limits that a Plan must keep.
const (
	maxConnections = 60_000
	maxPipeline    = 10_000
	maxKeys        = 10_000_000
	maxValue       = 1 << 20
	maxMultiget    = 1000
)

// Plan describes one load. Target, Connections, Pipeline, Keys, ValueSize and Ratio must be set; DefaultPlan
// has usable values.
type Plan struct {
	Target      string   `json:"target"`      // "host:port", or "unix:/path/to/socket"
	Protocol    Protocol `json:"protocol"`    // empty is Text
	Client      Client   `json:"client"`      // empty is Own
	Connections int      `json:"connections"` // clients connected for the whole load
	// Pipeline is how many requests a connection has on their way: in a closed loop those of a batch, in an
	// open loop at most. 1 is no pipelining.
	Pipeline int     `json:"pipeline"`
	Rate     float64 `json:"asked_rate"` // requests per second over all connections; 0 is a closed loop
	Churn    int     `json:"churn"`      // requests after which a connection is closed and made anew; 0 is never

	Keys         int             `json:"keys"`          // size of the key space
	KeySize      workload.Sizes  `json:"key_size"`      // empty is 11 bytes, the least there is
	ValueSize    workload.Sizes  `json:"value_size"`    // of each key always the same
	Choice       workload.Choice `json:"choice"`        // of keys; empty is uniform
	Ratio        workload.Ratio  `json:"ratio"`         // of sets, gets and multigets
	MultigetKeys int             `json:"multiget_keys"` // in a multiget; 0 is 10
	Lives        workload.Lives  `json:"lives"`         // of what is set; empty is for ever

	// Versions has every value carry the number of its write, so that values are told that were replaced
	// before they were asked for. Without, a value is a function of its key alone.
	Versions bool `json:"versions"`
	// Origin is what clients ask for a value that they miss, before they set it; nil means that they leave
	// it at that. The clients of gomemcache wait for the origin before they ask for more; our own do not.
	Origin *Origin `json:"origin,omitempty"`

	Lanes int    `json:"threads"` // event loops (threads) that drive the connections; 0 means 1
	Seed  uint64 `json:"seed"`    // of the request mix; the same seed offers the same requests

	// Wrap, when set, is given each connection after it was made and returns what to speak over, such
	// as a TLS client after its handshake; an error ends the Dial. Connections are then driven by a
	// goroutine each instead of the lanes, which costs the generator more, in a closed loop only.
	Wrap func(net.Conn) (net.Conn, error) `json:"-"`
}

// Origin describes what a cache protects: it takes the latency for each answer and gives at most so many at a
// time, 0 for no bound.
type Origin struct {
	Latency  time.Duration `json:"latency"`
	Capacity int           `json:"capacity"`
}

// Client is what speaks with the target.
type Client string

// The clients. The empty Client is Own.
const (
	Own        Client = "own"        // the event loops of this package
	Gomemcache Client = "gomemcache" // github.com/bradfitz/gomemcache, as an application uses it, a goroutine for each connection
)

// DefaultPlan is 50 connections without pipelining, 100-byte values and one set to ten gets.
func DefaultPlan(target string) Plan {
	return Plan{
		Target: target, Protocol: Text, Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: "100",
		Ratio: workload.Ratio{Sets: 1, Gets: 10}, Lanes: 1, Seed: 1,
	}
}

// Extent bounds one Run: it ends at whichever limit comes first. A zero field is no limit, and at
// least one must be set.
type Extent struct {
	Duration time.Duration // no request starts later than this after the first
	Requests int           // requests over all connections
	// Watch, when set, is told what was measured in each second, soon after it has passed. It is called by
	// one goroutine at a time, which drives load, and must not wait.
	Watch func(Window)
}

// Validate says what is wrong with the plan.
func (p Plan) Validate() error {
	if p.Target == "" {
		return errors.New("no target")
	}
	if r := p.Ratio; r.Sets+r.Gets+r.Multigets <= 0 || min(r.Sets, r.Gets, r.Multigets) < 0 {
		return fmt.Errorf("cannot mix sets, gets and multigets %v", r)
	}
	for _, err := range []error{p.Protocol.validate(), p.validateWords(), p.validateClient(), p.validateNumbers()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) validateNumbers() error {
	for _, f := range []struct {
		name          string
		is, low, high int
	}{
		{"connections", p.Connections, 1, maxConnections},
		{"pipeline", p.Pipeline, 1, maxPipeline},
		{"churn", p.Churn, 0, 1 << 30},
		{"keys", p.Keys, 1, maxKeys},
		{"keys in a multiget", p.MultigetKeys, 0, maxMultiget},
		{"lanes", p.Lanes, 0, 64},
	} {
		if f.is < f.low || f.is > f.high {
			return fmt.Errorf("%s is %d, not in %d..%d", f.name, f.is, f.low, f.high)
		}
	}
	if !(p.Rate >= 0 && p.Rate <= 1e8) {
		return fmt.Errorf("rate is %v requests a second, not in 0..1e8", p.Rate)
	}
	if o := p.Origin; o != nil && (o.Latency < 0 || o.Capacity < 0 || o.Capacity > 1e6) {
		return fmt.Errorf("origin takes %v and answers %d at a time: neither can be below 0", o.Latency, o.Capacity)
	}
	return nil
}

func (p Plan) validateWords() error {
	if err := p.ValueSize.Validate(); err != nil {
		return fmt.Errorf("value size: %w", err)
	}
	if size, ok := p.ValueSize.Fixed(); ok && size > maxValue {
		return fmt.Errorf("value size is %d, not in 0..%d", size, maxValue)
	}
	if p.KeySize != "" {
		if err := p.KeySize.Validate(); err != nil {
			return fmt.Errorf("key size: %w", err)
		}
		if size, ok := p.KeySize.Fixed(); ok && (size < keyLen || size > longestKey) {
			return fmt.Errorf("key size is %d, not in %d..%d", size, keyLen, longestKey)
		}
	}
	if err := p.Choice.Validate(); err != nil {
		return err
	}
	return p.Lives.Validate()
}

func (p Plan) validateClient() error {
	if p.Wrap != nil && (p.Rate > 0 || p.Churn > 0) {
		return errors.New("wrapped connections are for closed loops without churn")
	}
	switch p.Client {
	case Own, "":
		return nil
	case Gomemcache:
		if p.Protocol != Text && p.Protocol != "" || p.Pipeline > 1 || p.Wrap != nil {
			return errors.New("gomemcache speaks text, without pipelining")
		}
		return nil
	}
	return fmt.Errorf("client is %q, not %s or %s", string(p.Client), Own, Gomemcache)
}

// multigetKeys is how many keys a multiget has.
func (p Plan) multigetKeys() int {
	if p.MultigetKeys == 0 {
		return 10
	}
	return p.MultigetKeys
}

func (x Extent) validate() error {
	if x.Duration <= 0 && x.Requests <= 0 {
		return errors.New("a load needs a duration or a number of requests")
	}
	return nil
}
