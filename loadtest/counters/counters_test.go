package counters

import (
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
)

func TestWhatServersCountedSinceTheBeginning(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	c := caller.Conn{Target: servers[0].Addr(), Timeout: 10 * time.Second}
	defer c.Close()
	ask := func(times int) {
		t.Helper()
		for range times {
			if err := c.Set("a", []byte("1"), 0); err != nil {
				t.Fatal(err)
			}
			c.Get("a")
			c.Get("b")
		}
	}
	ask(5)
	w, err := Start(t.Context(), []string{servers[0].Addr(), servers[1].Addr()})
	if err != nil {
		t.Fatal(err)
	}
	ask(7)
	w.note()
	ask(2)
	w.note()
	all, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if s := all[0]; s.Gets != 18 || s.Sets != 9 || s.Hits != 9 || s.Misses != 9 || s.Items != 1 || s.Addr != servers[0].Addr() {
		t.Errorf("%+v", s)
	}
	sum := 0
	for _, n := range all[0].PerSecond {
		sum += n
	}
	if sum != 27 || len(all[0].PerSecond) < 2 {
		t.Errorf("by seconds %v, want 27 in all", all[0].PerSecond)
	}
	if s := all[1]; s.Gets+s.Sets != 0 {
		t.Errorf("%+v, although nobody asked it", s)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	down := memcachedtest.Reserve(t)
	if _, err := Start(t.Context(), []string{down}); err == nil || !strings.Contains(err.Error(), "counters: cannot ask "+down) {
		t.Errorf("%v", err)
	}
	servers := memcachedtest.StartN(t, 2)
	w, err := Start(t.Context(), []string{servers[0].Addr(), servers[1].Addr()})
	if err != nil {
		t.Fatal(err)
	}
	c := caller.Conn{Target: servers[1].Addr(), Timeout: 10 * time.Second}
	defer c.Close()
	c.Get("a")
	servers[0].Stop()
	all, err := w.Stop()
	if err == nil || len(all) != 2 || all[0].Addr != servers[0].Addr() || all[0].Gets != 0 || all[1].Gets != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}
