//go:build linux

package scenario

import (
	"fmt"
	"sync"
	"sync/atomic"

	"cacherouter/loadtest/origin"
)

// asking is a number of look-aside clients with one origin.
type asking struct {
	clients []*origin.Client // one for each worker
	origin  *origin.Origin
	sent    atomic.Int64 // requests
	failed  atomic.Int64 // requests that the cache did not answer
}

// warm asks for all hot keys once.
func (a *asking) warm() error {
	var warming sync.WaitGroup
	for w, c := range a.clients {
		warming.Go(func() {
			for i := w; i < hotKeys; i += len(a.clients) {
				if c.Get(hotKey(i)).Err != nil {
					a.failed.Add(1)
				}
			}
		})
	}
	warming.Wait()
	if n := a.failed.Load(); n > 0 {
		return fmt.Errorf("cannot warm the cache: %d requests failed", n)
	}
	return nil
}

// request asks for a cold key each 20th time, else for a hot one. The hot ones come in an order
// that looks like chance and visits all of them equally often.
func (a *asking) request(worker, n int) {
	key := hotKey(n * 7919 % hotKeys) // a prime, so that all are visited
	if n%coldEach == 0 {
		key = fmt.Sprintf("cold:%d", n)
	}
	if a.clients[worker].Get(key).Err != nil {
		a.failed.Add(1)
	}
	a.sent.Add(1)
}

func (a *asking) close() {
	for _, c := range a.clients {
		c.Cache.Close()
	}
}

func hotKey(i int) string { return fmt.Sprintf("hot:%d", i) }
