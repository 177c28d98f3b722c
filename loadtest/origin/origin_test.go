package origin

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
)

func TestOriginIsBoundByLatencyAndCapacity(t *testing.T) {
	f := func(capacity, asks int, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			o := New(10*time.Millisecond, capacity)
			begin := time.Now()
			var all sync.WaitGroup
			for range asks {
				all.Go(o.Fetch)
			}
			all.Wait()
			if took := time.Since(begin); took != want || o.Asked() != uint64(asks) {
				t.Errorf("%d answers took %v, want %v; %d counted", asks, took, want, o.Asked())
			}
		})
	}
	f(1, 5, 50*time.Millisecond)
	f(5, 12, 30*time.Millisecond)
	f(0, 100, 10*time.Millisecond)
}

func TestClientAsksTheOriginOnlyForWhatTheCacheHasNot(t *testing.T) {
	server := memcachedtest.Start(t)
	o := New(0, 0)
	c := &Client{
		Cache: &caller.Conn{Target: server.Addr(), Timeout: 10 * time.Second}, Origin: o, TTL: 100,
		Value: func(key string) []byte { return []byte("value of " + key) },
	}
	defer c.Cache.Close()
	f := func(key string, hit bool, asked uint64) {
		t.Helper()
		a := c.Get(key)
		if string(a.Value) != "value of "+key || a.Hit != hit || a.Err != nil || o.Asked() != asked {
			t.Errorf("%s: %q, hit %v, %v, origin asked %d times; want hit %v and %d", key, a.Value, a.Hit, a.Err, o.Asked(), hit, asked)
		}
	}
	f("a", false, 1)
	f("a", true, 1)
	f("b", false, 2)
	f("b", true, 2)
	server.Stop()
	if a := c.Get("a"); string(a.Value) != "value of a" || a.Hit || a.Err == nil || o.Asked() != 3 {
		t.Errorf("without a cache: %q, hit %v, %v, origin asked %d times", a.Value, a.Hit, a.Err, o.Asked())
	}
}
