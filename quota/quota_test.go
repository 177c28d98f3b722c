package quota

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// desk asks a quota at a time of its own.
type desk struct {
	t *testing.T
	*Quota
	now time.Duration
}

func newDesk(t *testing.T, c Config) *desk {
	t.Helper()
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, Quota: q}
}

// asks asks n times and wants so many to pass, and the others to be refused for a reason.
func (d *desk) asks(n, want int, why Verdict) {
	d.t.Helper()
	passed := 0
	for range n {
		switch v := d.Ask(d.now, 1); v {
		case Passed:
			passed++
		case why:
		default:
			d.t.Fatalf("at %v a request is refused by %d, want %d", d.now, v, why)
		}
	}
	if passed != want {
		d.t.Fatalf("at %v %d of %d requests pass, want %d", d.now, passed, n, want)
	}
}

func TestRate(t *testing.T) {
	d := newDesk(t, Config{Rate: 100, Burst: 5})
	d.asks(6, 5, TooFast)
	d.now += 9 * time.Millisecond
	d.asks(1, 0, TooFast)
	d.now += time.Millisecond
	d.asks(2, 1, TooFast)
	d.now += 20 * time.Millisecond
	d.asks(5, 2, TooFast)
	d.now += time.Hour
	d.asks(10, 5, TooFast)
	d.now -= time.Millisecond // another loop, whose clock is behind
	d.asks(1, 0, TooFast)
	passed := 0
	for range 10_000 { // 10 s of ten times as much
		d.now += time.Millisecond
		if d.Ask(d.now, 1) == Passed {
			passed++
		}
	}
	if passed < 999 || passed > 1001 {
		t.Errorf("%d pass in 10 s, want 1000", passed)
	}
	d = newDesk(t, Config{Rate: 10_000})
	d.asks(2000, 1000, TooFast) // a tenth of a second's
	d = newDesk(t, Config{Rate: 1})
	d.asks(2, 1, TooFast)
	if n := d.Refused(TooFast); n != 1 || d.Refused(TooMany) != 0 {
		t.Errorf("%d refused, want 1", n)
	}
}

// A request that counts for more than may come at once passes, and is waited for.
func TestLargeRequest(t *testing.T) {
	d := newDesk(t, Config{Rate: 100, Burst: 5})
	if d.Ask(d.now, 50) != Passed {
		t.Fatal("50 are refused where nothing was asked")
	}
	d.asks(1, 0, TooFast)
	d.now += 450 * time.Millisecond
	d.asks(1, 0, TooFast)
	d.now += 10 * time.Millisecond
	d.asks(2, 1, TooFast)
	d.now += time.Hour
	d.asks(1, 1, TooFast)
	d.Charge(d.now, 3)
	d.asks(2, 1, TooFast)
	d.Pass(d.now, 1) // beyond the rate
	d.now += 10 * time.Millisecond
	d.asks(1, 0, TooFast)
	d.now += 10 * time.Millisecond
	d.asks(2, 1, TooFast)
}

func TestConcurrent(t *testing.T) {
	d := newDesk(t, Config{Concurrent: 3})
	d.asks(5, 3, TooMany)
	if d.UnderWay() != 3 || d.Refused(TooMany) != 2 || d.Unused(d.now) {
		t.Errorf("%d under way, %d refused", d.UnderWay(), d.Refused(TooMany))
	}
	d.Done()
	d.asks(2, 1, TooMany)
	d.Pass(d.now, 1)
	d.Done()
	d.asks(1, 0, TooMany)
	for range 3 {
		d.Done()
	}
	if !d.Unused(d.now) {
		t.Errorf("%d under way at the end", d.UnderWay())
	}
	d.asks(4, 3, TooMany)
}

// What is refused for one reason uses up nothing of the other.
func TestRateAndConcurrent(t *testing.T) {
	d := newDesk(t, Config{Rate: 100, Burst: 3, Concurrent: 2})
	d.asks(10, 2, TooMany)
	d.Done()
	d.asks(1, 1, TooMany)
	d.Done()
	d.Done()
	d.asks(5, 0, TooFast)
	if d.UnderWay() != 0 {
		t.Errorf("%d under way of none", d.UnderWay())
	}
	d.now += 10 * time.Millisecond
	d.asks(1, 1, TooFast)
	if d.now += time.Second; d.Unused(d.now) {
		t.Error("unused while one is under way")
	}
	d.Done()
	if !d.Unused(d.now) {
		t.Error("used though a second has passed")
	}
}

func TestAnother(t *testing.T) {
	d := newDesk(t, Config{Rate: 1, Burst: 2, Concurrent: 5})
	d.asks(3, 2, TooFast)
	e := &desk{t: t, Quota: d.Another()}
	e.asks(4, 2, TooFast)
	if n := d.Refused(TooFast); n != 3 {
		t.Errorf("%d refused of both together, want 3", n)
	}
}

// A quota is that of all who share it.
func TestQuotaIsShared(t *testing.T) {
	d := newDesk(t, Config{Rate: 1000, Burst: 1000, Concurrent: 10_000})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				if d.Ask(time.Second, 1) == Passed {
					passed.Add(1)
					d.Done()
				}
			}
		})
	}
	wg.Wait()
	if n := passed.Load(); n != 1000 || d.UnderWay() != 0 {
		t.Errorf("%d pass, want 1000; %d are under way", n, d.UnderWay())
	}
}

func TestNothingIsBounded(t *testing.T) {
	q, err := New(Config{})
	if q != nil || err != nil {
		t.Fatalf("%v, %v", q, err)
	}
	if q.Ask(0, 1) != Passed {
		t.Error("refused")
	}
	q.Done()
}

func TestConfig(t *testing.T) {
	f := func(want string, c Config) {
		t.Helper()
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	f("a rate of -1", Config{Rate: -1})
	f("a rate of NaN", Config{Rate: math.NaN()})
	f("a rate of 1e+08", Config{Rate: 1e8})
	f("below one request", Config{Rate: 0.0001})
	f("a burst of -1", Config{Rate: 1, Burst: -1})
	f("wants a rate", Config{Burst: 1})
	f("-1 requests under way", Config{Concurrent: -1})
}

// What is written with each request has its cache lines to itself.
func TestPadding(t *testing.T) {
	var q Quota
	if at := unsafe.Offsetof(q.next); at != 128 || unsafe.Sizeof(q) != 256 {
		t.Errorf("a quota has %d bytes, and is written at %d", unsafe.Sizeof(q), at)
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	d := newDesk(t, Config{Rate: 1000, Concurrent: 1})
	ask := func() {
		if d.now += time.Microsecond; d.Ask(d.now, 1) == Passed {
			d.Done()
		}
	}
	if n := testing.AllocsPerRun(1000, ask); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkQuota(b *testing.B) {
	for name, c := range map[string]Config{"rate": {Rate: 1e7}, "concurrent": {Concurrent: 100}, "both": {Rate: 1e7, Concurrent: 100}} {
		b.Run(name, func(b *testing.B) {
			q, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for now := time.Duration(0); pb.Next(); now += 100 {
					if q.Ask(now, 1) == Passed {
						q.Done()
					}
				}
			})
		})
	}
}
