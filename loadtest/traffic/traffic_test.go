package traffic

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/caller"
	"cacherouter/loadtest/ledger"
)

func plan(targets ...string) Plan {
	return Plan{
		Targets: targets, Ledger: ledger.New(500, 100), Rate: 2000, Writes: 200, Deletes: 50,
		Timeout: 10 * time.Second, Seed: 1,
	}
}

// begin starts the load on a full cache.
func begin(t *testing.T, p Plan) *Running {
	t.Helper()
	if err := Fill(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r, err := Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop() })
	return r
}

// until waits for something to have been seen.
func until(t *testing.T, what string, seen func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !seen() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func requests(a *Account) int { done, _ := a.Done(); return done }

func TestMemcachedKeepsWhatItIsGiven(t *testing.T) {
	server := memcachedtest.Start(t)
	r := begin(t, plan(server.Addr()))
	a := r.Account()
	until(t, "2000 requests were answered", func() bool { return requests(a) >= 2000 })
	paced := r.Stop()
	done, failed := a.Done()
	if failed != 0 || a.Count(ledger.Lost) != 0 || a.Count(ledger.Stale) != 0 || a.Count(ledger.Wrong) != 0 {
		t.Errorf("%d failed, %d lost, %d stale, %d wrong: %q", failed, a.Count(ledger.Lost), a.Count(ledger.Stale), a.Count(ledger.Wrong), a.Bad())
	}
	// The first write of a key that another worker is writing is left out.
	if done > paced.Started || done < paced.Started*9/10 || a.Count(ledger.Fresh) == 0 || a.Count(ledger.Absent) == 0 {
		t.Errorf("%d of %d answered, %d fresh, %d absent", done, paced.Started, a.Count(ledger.Fresh), a.Count(ledger.Absent))
	}
}

// A checker that sees no fault is worth nothing: each is made here.
func TestFaultsAreSeen(t *testing.T) {
	server := memcachedtest.Start(t)
	p := plan(server.Addr())
	p.Deletes = 0
	r := begin(t, p)
	a := r.Account()
	c := caller.Conn{Target: server.Addr(), Timeout: 10 * time.Second}
	defer c.Close()
	old := map[string][]byte{}
	for i := range 100 {
		old[ledger.Key(i)], _, _ = c.Get(ledger.Key(i))
	}
	write := func(value func(key string) []byte) func() {
		return func() {
			for key := range old {
				if err := c.Set(key, value(key), 0); err != nil {
					t.Error(err)
				}
			}
		}
	}
	until(t, "an old value is stale", func() bool {
		write(func(key string) []byte { return old[key] })()
		return a.Count(ledger.Stale) > 0
	})
	until(t, "another key's value is wrong", func() bool {
		write(func(string) []byte { return old[ledger.Key(0)] })()
		return a.Count(ledger.Wrong) > 0
	})
	until(t, "a deleted value is lost", func() bool {
		for key := range old {
			c.Delete(key)
		}
		return a.Count(ledger.Lost) > 0
	})
	if len(a.Bad()) == 0 {
		t.Error("nothing is described")
	}
}

func TestFailuresAreTimedAndTold(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	r := begin(t, plan(servers[0].Addr(), servers[1].Addr()))
	a := r.Account()
	until(t, "requests were answered", func() bool { return requests(a) >= 500 })
	killed := time.Now()
	servers[1].Stop()
	until(t, "reads and writes failed", func() bool {
		return len(a.Failures(false, killed)) > 10 && len(a.Failures(true, killed)) > 10
	})
	r.Stop()
	for _, write := range []bool{false, true} {
		last := time.Time{}
		for _, f := range a.Failures(write, time.Time{}) {
			if f.Target != 1 || f.At.Before(killed) || f.At.Before(last) || errors.As(f.Err, new(caller.Refusal)) {
				t.Errorf("%+v, killed at %v", f, killed)
			}
			last = f.At
		}
	}
}

func TestClientsOfSeveralTargetsAskTheOther(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	p := plan(servers[0].Addr(), servers[1].Addr())
	p.Failover, p.Churn, p.Writes, p.Deletes = true, 7, 0, 0
	r := begin(t, p)
	a := r.Account()
	until(t, "requests were answered", func() bool { return requests(a) >= 500 })
	if a.Again() != 0 {
		t.Errorf("%d were asked again before anything failed", a.Again())
	}
	servers[1].Stop()
	at := requests(a)
	until(t, "more were answered", func() bool { return requests(a) >= at+2000 })
	r.Stop()
	if _, failed := a.Done(); failed != 0 || a.Again() == 0 {
		t.Errorf("%d failed, %d were asked again", failed, a.Again())
	}
	if n := servers[0].Stat("total_connections"); n < 100 {
		t.Errorf("%d connections were made, though each was for seven requests", n)
	}
}

func TestRefillBringsTheHitsBack(t *testing.T) {
	server := memcachedtest.Start(t)
	p := plan(server.Addr())
	p.Writes, p.Deletes, p.Refill = 0, 0, true
	r := begin(t, p)
	a := r.Account()
	until(t, "requests were answered", func() bool { return requests(a) >= 200 })
	emptied := time.Now()
	server.Restart()
	until(t, "all was written again", func() bool {
		now := time.Now()
		return now.Sub(emptied) > 600*time.Millisecond && a.HitRatio(now.Add(-500*time.Millisecond), now) > 0.99
	})
	if worst := a.WorstHitRatio(emptied.Add(-time.Second), time.Now(), 200*time.Millisecond); worst > 0.8 {
		t.Errorf("the worst hit ratio is %v, although the cache was emptied", worst)
	}
	if before := a.HitRatio(a.begin, emptied); before < 0.99 {
		t.Errorf("the hit ratio was %v before", before)
	}
}

func TestKeysBecomeRarerByZipfsLaw(t *testing.T) {
	p := Plan{Ledger: ledger.New(100, 1), Zipf: 1.2}
	key, counts := p.keys(rand.New(rand.NewPCG(1, 2))), make([]int, 100)
	const draws = 200_000
	for range draws {
		counts[key()]++
	}
	sum := 0.0
	for i := range counts {
		sum += math.Pow(float64(i+1), -p.Zipf)
	}
	for _, i := range []int{0, 1, 9, 99} {
		want := math.Pow(float64(i+1), -p.Zipf) / sum
		if got := float64(counts[i]) / draws; math.Abs(got/want-1) > 0.1 {
			t.Errorf("key %d came to %.4f of the requests, want %.4f", i, got, want)
		}
	}
}

// lossy forgets every value.
type lossy struct{ closed atomic.Int64 }

func (l *lossy) Get(string) ([]byte, bool, error) { return nil, false, nil }

func (l *lossy) Set(string, []byte, int) error { return nil }

func (l *lossy) Delete(string) error { return nil }

func (l *lossy) Close() { l.closed.Add(1) }

func TestACacheIsAskedInPlaceOfTargets(t *testing.T) {
	p, cache := plan(), &lossy{}
	p.Cache, p.Workers = cache, 4
	r := begin(t, p)
	until(t, "values were lost", func() bool { return r.Account().Count(ledger.Lost) > 0 })
	before := cache.closed.Load()
	r.Stop()
	if n := cache.closed.Load() - before; n != 4 {
		t.Errorf("closed %d times, want once for each worker", n)
	}
}

func TestWhatCannotBeOffered(t *testing.T) {
	for _, p := range []Plan{{}, {Targets: []string{"x"}, Ledger: ledger.New(1, 1)}, {Targets: []string{"x"}, Rate: 1}, {Targets: []string{"x"}, Ledger: ledger.New(1, 1), Rate: 1, Zipf: -1}} {
		if _, err := Start(t.Context(), p); err == nil {
			t.Errorf("%+v was started", p)
		}
	}
	if err := Fill(t.Context(), plan(memcachedtest.Reserve(t))); err == nil {
		t.Error("nobody was filled")
	}
}

// Workers that know two targets lose at most one request each when one of the two is killed, and go on.
func TestWorkersSwitchTargets(t *testing.T) {
	a, b := memcachedtest.Start(t), memcachedtest.Start(t)
	p := plan(a.Addr(), b.Addr())
	p.Switch, p.Workers = true, 10
	r := begin(t, p)
	seen := r.Account()
	until(t, "requests were answered", func() bool { return requests(seen) >= 500 })
	b.Stop()
	now := requests(seen)
	until(t, "1,000 more were", func() bool { return requests(seen) >= now+1000 })
	if _, failed := seen.Done(); failed == 0 || failed > p.Workers {
		t.Errorf("%d requests failed, want 1 to %d", failed, p.Workers)
	}
}
