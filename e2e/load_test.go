package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is a number of clients that write and read keys of their own as fast as they can, and check every reply.
type load struct {
	tb     testing.TB
	stop   atomic.Bool
	moving atomic.Bool // keys change servers, so that an earlier value may be seen again
	wg     sync.WaitGroup
	done   atomic.Int64 // requests answered well
	failed atomic.Int64 // requests answered with SERVER_ERROR
}

// startLoad runs clients against addr until finish, or the end of the test.
func startLoad(tb testing.TB, addr string, clients int) *load {
	tb.Helper()
	l := &load{tb: tb}
	for i := range clients {
		c := connect(tb, addr)
		l.wg.Go(func() {
			if err := l.run(c, fmt.Sprintf("load:%d", i)); err != nil {
				tb.Errorf("client %d: %v", i, err)
			}
		})
	}
	tb.Cleanup(func() { l.finish() })
	return l
}

// finish stops the clients and returns how many requests went well and how many failed in good order.
func (l *load) finish() (done, failed int64) {
	l.stop.Store(true)
	l.wg.Wait()
	return l.done.Load(), l.failed.Load()
}

// progress waits until n more requests went well.
func (l *load) progress(n int64) {
	l.tb.Helper()
	target := l.done.Load() + n
	waitFor(l.tb, fmt.Sprintf("%d requests to go well", n), func() error {
		if l.tb.Failed() {
			l.tb.FailNow()
		}
		if done := l.done.Load(); done < target {
			return fmt.Errorf("%d still to come, %d failed so far", target-done, l.failed.Load())
		}
		return nil
	})
}

// cleanly waits until n requests in a row went well.
func (l *load) cleanly(n int64) {
	l.tb.Helper()
	waitFor(l.tb, fmt.Sprintf("%d requests without a failure", n), func() error {
		failed, target := l.failed.Load(), l.done.Load()+n
		for l.done.Load() < target && l.failed.Load() == failed {
			if l.tb.Failed() {
				l.tb.FailNow()
			}
			time.Sleep(time.Millisecond)
		}
		if l.failed.Load() != failed {
			return fmt.Errorf("%d have failed", l.failed.Load())
		}
		return nil
	})
}

// cell is what one client knows of one of its keys.
type cell struct {
	key    string
	last   int  // the number of the last write that was tried
	stored int  // the number of the last write that was acknowledged
	murky  bool // a request for the key has failed, so an earlier write may still surface
}

// run writes and reads sixteen keys in turn, four requests to a pipeline. It returns what no failure excuses.
func (l *load) run(c *client, name string) error {
	cells := make([]cell, 16)
	for i := range cells {
		cells[i].key = fmt.Sprintf("%s:%d", name, i)
	}
	for round := 0; !l.stop.Load(); round++ {
		a, b := &cells[round%16], &cells[(round*7+3)%16]
		if err := l.round(c, a, b); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// round pipelines a write of a, reads of a and b, and a read of both.
func (l *load) round(c *client, a, b *cell) error {
	a.last++
	value := fmt.Sprintf("%s=%d%s", a.key, a.last, strings.Repeat("-", padding(a.last)))
	if err := c.send(fmt.Sprintf("set %s 0 0 %d\r\n%s\r\nget %s\r\nget %s\r\nget %s %s\r\n",
		a.key, len(value), value, a.key, b.key, a.key, b.key)); err != nil {
		return err
	}
	reply, err := c.line()
	switch {
	case failed(err):
		a.murky = true
	case err != nil:
		return err
	case reply != "STORED":
		return fmt.Errorf("set of %s: %q", a.key, reply)
	default:
		a.stored = a.last
	}
	l.count(err)
	for _, asked := range [][]*cell{{a}, {b}, {a, b}} {
		if err := l.check(c, asked); err != nil {
			return err
		}
	}
	return nil
}

// padding makes the length of a value a function of its number. Every ninth is long enough to travel on another
// connection than its neighbours.
func padding(n int) int {
	if n%9 == 0 {
		return 40000 + n%300
	}
	return n % 300
}

func (l *load) count(err error) {
	if err != nil {
		l.failed.Add(1)
	} else {
		l.done.Add(1)
	}
}

// check reads the reply to a get of the cells and holds it against what was written.
func (l *load) check(c *client, asked []*cell) error {
	values, err := c.values()
	if err != nil && !failed(err) {
		return err
	}
	l.count(err)
	for _, cell := range asked {
		if err != nil {
			continue
		}
		if err := cell.check(values, l.moving.Load()); err != nil {
			return err
		}
		delete(values, cell.key)
	}
	if len(asked) == 2 && asked[0] == asked[1] {
		return nil
	}
	for key := range values {
		return fmt.Errorf("a value of %s came, which was not asked for", key)
	}
	return nil
}

// check accepts a miss, since servers may lose what they hold; but a value must be one that was written to this key,
// and the last one unless something failed or keys move.
func (c *cell) check(values map[string]string, moving bool) error {
	value, hit := values[c.key]
	if !hit {
		return nil
	}
	key, rest, _ := strings.Cut(value, "=")
	n, err := strconv.Atoi(strings.TrimRight(rest, "-"))
	switch {
	case err != nil || key != c.key || n > c.last || len(rest)-len(strconv.Itoa(n)) != padding(n):
		return fmt.Errorf("%s has a value never written to it: %.100q", c.key, value)
	case n != c.stored && !c.murky && !moving:
		return fmt.Errorf("%s has value %d, want %d", c.key, n, c.stored)
	}
	return nil
}
