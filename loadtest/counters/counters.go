// Package counters reads what memcached servers count themselves while a load runs: how much came to each
// of them, whoever it came through.
package counters

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cacherouter/loadtest/caller"
)

// Server is what one server has counted.
type Server struct {
	Addr      string `json:"addr"`
	Gets      int    `json:"cmd_get"`
	Sets      int    `json:"cmd_set"`
	Hits      int    `json:"get_hits"`
	Misses    int    `json:"get_misses"`
	Evictions int    `json:"evictions"`
	Items     int    `json:"curr_items"` // in the end
	// PerSecond is gets and sets in each second; one in which the server did not answer is counted in the next.
	PerSecond []int `json:"per_second"`
}

// Watch is a watch on some servers.
type Watch struct {
	conns  []*caller.Conn
	before []Server
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex // guards series and the connections
	series [][]int    // gets and sets since the beginning, by server and second
}

// patience bounds each question.
const patience = 5 * time.Second

// Start reads the counters and goes on to do so each second, until Stop. The addresses are host:port.
func Start(ctx context.Context, addrs []string) (*Watch, error) {
	w := &Watch{series: make([][]int, len(addrs))}
	for _, addr := range addrs {
		w.conns = append(w.conns, &caller.Conn{Target: addr, Timeout: patience})
	}
	var err error
	if w.before, err = w.read(); err != nil {
		w.close()
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() { w.follow(ctx) })
	return w, nil
}

func (w *Watch) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.note()
		case <-ctx.Done():
			return
		}
	}
}

// note adds a second. A server that does not answer has nothing new.
func (w *Watch) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.conns {
		sum := 0
		if n := len(w.series[i]); n > 0 {
			sum = w.series[i][n-1]
		}
		if now, err := count(c); err == nil {
			sum = now.Gets + now.Sets - w.before[i].Gets - w.before[i].Sets
		}
		w.series[i] = append(w.series[i], sum)
	}
}

// Stop ends the watch and returns what was counted since it began. Servers that do not answer any more are an
// error; what the others counted is returned all the same.
func (w *Watch) Stop() ([]Server, error) {
	w.stop()
	w.done.Wait()
	defer w.close()
	all, err := w.read()
	for i := range all {
		s, b := &all[i], w.before[i]
		if s.Addr == "" { // gone
			s.Addr = b.Addr
			continue
		}
		s.Gets, s.Sets, s.Hits, s.Misses, s.Evictions = s.Gets-b.Gets, s.Sets-b.Sets, s.Hits-b.Hits, s.Misses-b.Misses, s.Evictions-b.Evictions
		last := 0
		for _, sum := range w.series[i] {
			s.PerSecond = append(s.PerSecond, sum-last)
			last = sum
		}
	}
	return all, err
}

// read asks all servers. It goes on after one that does not answer, and returns the first error.
func (w *Watch) read() (all []Server, err error) {
	for _, c := range w.conns {
		s, errOne := count(c)
		if err == nil && errOne != nil {
			err = fmt.Errorf("cannot read a server's counters: %w", errOne)
		}
		all = append(all, s)
	}
	return all, err
}

func count(c *caller.Conn) (Server, error) {
	stats, err := c.Stats()
	if err != nil {
		return Server{}, err
	}
	return Server{
		Addr: c.Target, Gets: stats["cmd_get"], Sets: stats["cmd_set"], Hits: stats["get_hits"], Misses: stats["get_misses"],
		Evictions: stats["evictions"], Items: stats["curr_items"],
	}, nil
}

func (w *Watch) close() {
	for _, c := range w.conns {
		c.Close()
	}
}
