// Package walk is bounded load without copies: what HAProxy does with "balance hash" and
// "hash-balance-factor", if it spoke memcached.
//
// Each key has its place on a ring of servers. A request, be it a read or a write, goes to the first
// server from there on that has no more than its share of what is in flight. Nobody knows which
// servers have held a key before: a read that walks on finds nothing, or something old.
package walk

import (
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"cacherouter/loadtest/caller"
	"cacherouter/ring"
)

// Walker is one such proxy. It may be used concurrently.
type Walker struct {
	ring     *ring.Ring
	perMille int
	targets  []string
	timeout  time.Duration

	mu      sync.Mutex // guards all below
	serving []int      // in flight at each server
	all     int
	idle    [][]*caller.Conn // connections to each server that nobody uses
}

// Config describes a walker. Names and Targets must be set, and be as many.
type Config struct {
	Names    []string      // of the servers: their places on the ring
	Targets  []string      // their addresses, host:port
	PerMille int           // how many thousandths of the mean a server may have in flight; 1000 or more
	Timeout  time.Duration // for each request; 0 means no bound
}

// New returns a walker with nothing in flight.
func New(c Config) (*Walker, error) {
	if len(c.Names) != len(c.Targets) || c.PerMille < 1000 {
		return nil, fmt.Errorf("cannot walk among %d servers at %d addresses with %d thousandths of the mean", len(c.Names), len(c.Targets), c.PerMille)
	}
	r, err := ring.New(c.Names, nil)
	if err != nil {
		return nil, err
	}
	n := len(c.Names)
	return &Walker{ring: r, perMille: c.PerMille, targets: c.Targets, timeout: c.Timeout, serving: make([]int, n), idle: make([][]*caller.Conn, n)}, nil
}

// Get returns the value of a key, if the server that it comes to has one.
func (w *Walker) Get(key string) (value []byte, hit bool, err error) {
	err = w.at(key, func(c *caller.Conn) (err error) {
		value, hit, err = c.Get(key)
		return err
	})
	return value, hit, err
}

// Set stores a value for ttl seconds, 0 for ever, at the server that it comes to.
func (w *Walker) Set(key string, value []byte, ttl int) error {
	return w.at(key, func(c *caller.Conn) error { return c.Set(key, value, ttl) })
}

// Delete removes a key from the server that it comes to.
func (w *Walker) Delete(key string) error {
	return w.at(key, func(c *caller.Conn) error { return c.Delete(key) })
}

// Close closes the connections that nobody uses. The walker can be used again.
func (w *Walker) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.idle {
		for _, c := range w.idle[i] {
			c.Close()
		}
		w.idle[i] = nil
	}
}

// at does something at the server that has room for a key.
func (w *Walker) at(key string, do func(*caller.Conn) error) error {
	i, c := w.take(w.order(key))
	err := do(c)
	w.give(i, c)
	return err
}

// order is the servers from a key's place on.
func (w *Walker) order(key string) []int {
	return w.ring.Pick(make([]int, 0, len(w.targets)), xxhash.Sum64String(key), len(w.targets))
}

// take counts a request at the first server with room, and returns a connection to it. If
// there is none the first takes it, but there always is one while the factor is above 1.
func (w *Walker) take(order []int) (server int, c *caller.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	server = order[0]
	for _, i := range order {
		if w.serving[i] < w.shareLocked() {
			server = i
			break
		}
	}
	w.serving[server]++
	w.all++
	if n := len(w.idle[server]); n > 0 {
		c, w.idle[server] = w.idle[server][n-1], w.idle[server][:n-1]
		return server, c
	}
	return server, &caller.Conn{Target: w.targets[server], Timeout: w.timeout}
}

// shareLocked is ceil(c * (all+1) / n), which is at least 1.
func (w *Walker) shareLocked() int {
	whole := 1000 * len(w.targets)
	return (w.perMille*(w.all+1) + whole - 1) / whole
}

func (w *Walker) give(server int, c *caller.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving[server]--
	w.all--
	w.idle[server] = append(w.idle[server], c)
}
