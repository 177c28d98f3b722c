package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/journal"
)

// fakeServer is a memcached as a prober sees it.
type fakeServer struct {
	down, stopped, deaf bool // deaf refuses to be emptied
	process             journal.Process
	flushes             int
	deleted             []string
}

// fleet is a prober for fake servers, and the network between routers of one test.
type fleet struct {
	mu      sync.Mutex
	servers map[string]*fakeServer // guarded by mu: by address
	links   []*fakeLink            // guarded by mu
	cut     map[int]bool           // guarded by mu: routers that hear nobody
	cut2    map[string]bool        // guarded by mu: "router>address" that cannot be reached
}

func newFleet(n int) *fleet {
	f := &fleet{servers: map[string]*fakeServer{}, cut: map[int]bool{}, cut2: map[string]bool{}}
	for i := range n {
		f.servers[fmt.Sprintf("10.0.0.%d:1", i)] = &fakeServer{process: journal.Process{PID: 1, Started: time.Now()}}
	}
	return f
}

func (f *fleet) list() discover.Static {
	var l discover.Static
	for a := range f.servers {
		l = append(l, discover.Server{Name: strings.TrimSuffix(a, ":1"), Address: a, Weight: 1})
	}
	return l
}

func (f *fleet) with(addr string, do func(*fakeServer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.servers[addr])
}

// reach is what becomes of any conversation.
func (f *fleet) reach(ctx context.Context, router, addr string, do func(*fakeServer) error) error {
	f.mu.Lock()
	s := f.servers[addr]
	stopped := s != nil && s.stopped || f.cut2[router+">"+addr]
	f.mu.Unlock()
	if stopped {
		<-ctx.Done()
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == nil || s.down {
		return errors.New("refused")
	}
	return do(s)
}

// prober is the fleet as one router sees it.
type prober struct {
	*fleet
	router string
}

func (p prober) Probe(ctx context.Context, addr string) error {
	return p.reach(ctx, p.router, addr, func(*fakeServer) error { return nil })
}

func (p prober) Identify(ctx context.Context, addr string) (id journal.Process, err error) {
	err = p.reach(ctx, p.router, addr, func(s *fakeServer) error { id = s.process; return nil })
	return id, err
}

func (p prober) Delete(ctx context.Context, addr string, keys []journal.Entry) error {
	return p.reach(ctx, p.router, addr, func(s *fakeServer) error {
		for _, k := range keys {
			s.deleted = append(s.deleted, string(k.Key))
		}
		return nil
	})
}

func (p prober) Flush(ctx context.Context, addr string) error {
	return p.reach(ctx, p.router, addr, func(s *fakeServer) error {
		if s.deaf {
			return errors.New("not allowed")
		}
		s.flushes++
		return nil
	})
}

// fakeLink carries messages between the routers of one test.
type fakeLink struct {
	f *fleet
	i int
	h gossip.Handler
}

func (l *fakeLink) each(do func(h gossip.Handler)) {
	l.f.mu.Lock()
	links := slices.Clone(l.f.links)
	cut := l.f.cut[l.i]
	for i := range links {
		if i == l.i || l.f.cut[i] || cut {
			links[i] = nil
		}
	}
	l.f.mu.Unlock()
	for _, to := range links {
		if to != nil {
			do(to.h)
		}
	}
}

func (l *fakeLink) Send(b []byte)         { l.each(func(h gossip.Handler) { h.Merge(slices.Clone(b)) }) }
func (l *fakeLink) SendHint(b []byte)     { l.each(func(h gossip.Handler) { h.Hint(b) }) }
func (l *fakeLink) SendAnnounce(b []byte) { l.each(func(h gossip.Handler) { h.Announce(b) }) }
func (l *fakeLink) Stats() gossip.Stats   { return gossip.Stats{} }
func (l *fakeLink) Joined() <-chan struct{} {
	l.f.mu.Lock()
	links := slices.Clone(l.f.links)
	l.f.mu.Unlock()
	for _, other := range links {
		if other != l {
			l.h.Merge(other.h.State())
		}
	}
	c := make(chan struct{})
	close(c)
	return c
}

func (l *fakeLink) Refusing() []string          { return nil }
func (l *fakeLink) Members() []gossip.Member    { return nil }
func (l *fakeLink) SetKeys([][]byte) error      { return nil }
func (l *fakeLink) SetNote(string) error        { return nil }
func (l *fakeLink) Pause() error                { return nil }
func (l *fakeLink) Resume() error               { return nil }
func (l *fakeLink) Close(context.Context) error { return nil }

func (f *fleet) link(h gossip.Handler) link {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &fakeLink{f, len(f.links), h}
	f.links = append(f.links, l)
	return l
}

// start starts routers over the fleet, which end with the test.
func (f *fleet) start(t *testing.T, routers int, change func(*Config)) []*Cluster {
	t.Helper()
	var all []*Cluster
	for i := range routers {
		c := Config{Router: fmt.Sprint("r", i), Log: slog.New(slog.DiscardHandler)}
		c.Sources = []*discover.Watcher{{Name: "static", Source: f.list(), Log: c.Log}}
		c.Prober = prober{f, c.Router}
		if routers > 1 {
			c.link = f.link
		}
		if change != nil {
			change(&c)
		}
		cl, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cl)
		t.Cleanup(func() {
			if err := cl.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(10 * time.Second) // for the routers to hear of each other; time is not real
	return all
}

// traffic reports requests to a server until it stops being used.
func traffic(c *Cluster, server string, refused bool) {
	for range 3 {
		if refused {
			c.Observe(server, health.Observation{Refused: 1, Streak: 1})
		} else {
			c.Observe(server, health.Observation{OK: 1, Latency: time.Millisecond})
		}
	}
	synctest.Wait()
}
