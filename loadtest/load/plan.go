//go:build linux

// Package load offers memcached requests to a target and measures how they are answered.
//
// The load is a closed loop: each connection sends a batch of requests, waits until the whole
// batch is answered and sends the next. It is cheap on purpose, because it shares the machine with
// what it measures: connections are driven by a few event loops over epoll, a batch is one write,
// and nothing is allocated per request. Every value is a pure function of its key, so every reply
// is checked byte for byte. The price of a closed loop is that a slow target is asked less often;
// latencies under overload are therefore flattering, and are meant for comparing targets.
package load

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Limits that a Plan must keep.
const (
	maxConnections = 60_000
	maxPipeline    = 10_000
	maxKeys        = 10_000_000
	maxValue       = 1 << 20
)

// Plan describes one load. Every field but Protocol, Hot, Lanes and Wrap must be set; DefaultPlan has
// usable values.
type Plan struct {
	Target      string   // "host:port", or "unix:/path/to/socket"
	Protocol    Protocol // empty is Text
	Connections int      // clients connected for the whole load
	Pipeline    int      // requests in one batch of one connection; 1 is no pipelining
	Keys        int      // size of the key space; requests choose among them uniformly
	Hot         int      // per cent of the requests that do not choose, but are for the first key
	ValueSize   int      // bytes in each value
	Sets        int      // share of sets in the mix, against Gets
	Gets        int      // share of gets in the mix, against Sets
	Lanes       int      // event loops (threads) that drive the connections; 0 means 1
	Seed        uint64   // seed of the request mix; the same seed offers the same requests

	// Wrap, when set, is given each connection after it was made and returns what to speak over, such
	// as a TLS client after its handshake; an error ends the Dial. Connections are then driven by a
	// goroutine each instead of the lanes, which costs the generator more.
	Wrap func(net.Conn) (net.Conn, error) `json:"-"`
}

// DefaultPlan is 50 connections without pipelining, 100-byte values and one set to ten gets.
func DefaultPlan(target string) Plan {
	return Plan{
		Target: target, Protocol: Text, Connections: 50, Pipeline: 1, Keys: 10_000, ValueSize: 100,
		Sets: 1, Gets: 10, Lanes: 1, Seed: 1,
	}
}

// Extent bounds one Run: it ends at whichever limit comes first. A zero field is no limit, and at
// least one must be set.
type Extent struct {
	Duration time.Duration // no request starts later than this after the first
	Requests int           // requests over all connections
}

func (p Plan) validate() error {
	if p.Target == "" {
		return errors.New("no target")
	}
	if p.Sets+p.Gets == 0 || p.Sets < 0 || p.Gets < 0 {
		return fmt.Errorf("cannot mix sets and gets %d:%d", p.Sets, p.Gets)
	}
	if err := p.Protocol.validate(); err != nil {
		return err
	}
	for _, f := range []struct {
		name          string
		is, low, high int
	}{
		{"connections", p.Connections, 1, maxConnections},
		{"pipeline", p.Pipeline, 1, maxPipeline},
		{"keys", p.Keys, 1, maxKeys},
		{"share of the hot key", p.Hot, 0, 100},
		{"value size", p.ValueSize, 0, maxValue},
		{"lanes", p.Lanes, 0, 64},
	} {
		if f.is < f.low || f.is > f.high {
			return fmt.Errorf("%s is %d, not in %d..%d", f.name, f.is, f.low, f.high)
		}
	}
	return nil
}

func (x Extent) validate() error {
	if x.Duration <= 0 && x.Requests <= 0 {
		return errors.New("a load needs a duration or a number of requests")
	}
	return nil
}
