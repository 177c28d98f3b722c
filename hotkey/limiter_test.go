package hotkey

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type limitDesk struct {
	t *testing.T
	*Limiter
	now time.Duration
}

func newLimitDesk(t *testing.T, c LimitConfig) *limitDesk {
	t.Helper()
	l, err := NewLimiter(c)
	if err != nil {
		t.Fatal(err)
	}
	return &limitDesk{t: t, Limiter: l}
}

func (d *limitDesk) hot(hashes ...uint64) {
	levels := make(map[uint64]Level)
	for _, h := range hashes {
		levels[h] = Hot
	}
	d.Follow(newHeat(levels))
}

// allows asks n times and wants so many to be allowed.
func (d *limitDesk) allows(hash uint64, n, want int) {
	d.t.Helper()
	got := 0
	for range n {
		if d.Allow(hash, d.now) {
			got++
		}
	}
	if got != want {
		d.t.Fatalf("at %v %d of %d requests on %d are allowed, want %d", d.now, got, n, hash, want)
	}
}

func TestOnlyHotKeysAreLimited(t *testing.T) {
	d := newLimitDesk(t, LimitConfig{Rate: 100, Burst: 5})
	d.allows(1, 1000, 1000)
	d.hot(1, 2)
	d.allows(1, 1000, 5)
	d.allows(2, 1000, 5)
	d.allows(3, 1000, 1000)
	d.hot(1, 3) // the limit of 1 goes on where it was
	d.allows(1, 10, 0)
	d.allows(2, 1000, 1000)
	d.hot()
	d.allows(1, 1000, 1000)
	if got := d.Refused(); got != 2000 {
		t.Errorf("%d refused, want 2000", got)
	}
}

func TestLimitedRate(t *testing.T) {
	d := newLimitDesk(t, LimitConfig{Rate: 100, Burst: 5})
	d.hot(1)
	d.allows(1, 6, 5)
	d.now += 9 * time.Millisecond
	d.allows(1, 1, 0)
	d.now += time.Millisecond
	d.allows(1, 2, 1)
	d.now += 20 * time.Millisecond
	d.allows(1, 5, 2)
	d.now += time.Hour
	d.allows(1, 10, 5)
	d.now -= time.Millisecond // another loop, whose clock is behind
	d.allows(1, 1, 0)
	allowed := 0
	for range 10_000 { // 10 s of ten times as much
		d.now += time.Millisecond
		if d.Allow(1, d.now) {
			allowed++
		}
	}
	if allowed < 999 || allowed > 1001 {
		t.Errorf("%d are allowed in 10 s, want 1000", allowed)
	}
	d = newLimitDesk(t, LimitConfig{Rate: 10_000})
	d.hot(1)
	d.allows(1, 2000, 1000) // a tenth of a second's
}

// The limit is that of all loops together, while the hot keys change.
func TestLimitIsShared(t *testing.T) {
	d := newLimitDesk(t, LimitConfig{Rate: 1000, Burst: 1000})
	d.hot(1)
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				if d.Allow(1, time.Second) {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range uint64(1000) {
			d.hot(1, 2+i, 3*i+10)
		}
	})
	wg.Wait()
	if n := allowed.Load(); n != 1000 {
		t.Errorf("%d are allowed, want 1000", n)
	}
}

func TestLimitConfig(t *testing.T) {
	for _, c := range []LimitConfig{{}, {Rate: -1}, {Rate: math.NaN()}, {Rate: 1e8}, {Rate: 1, Burst: -1}} {
		if _, err := NewLimiter(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	l, err := NewLimiter(LimitConfig{Rate: 1e7})
	if err != nil {
		b.Fatal(err)
	}
	l.Follow(newHeat(map[uint64]Level{1: Hot}))
	for name, hash := range map[string]uint64{"hot": 1, "cold": 2} {
		b.Run(name, func(b *testing.B) {
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 50 // every other one is refused
				l.Allow(hash, now)
			}
		})
	}
}

func TestAllowAllocatesNothing(t *testing.T) {
	d := newLimitDesk(t, LimitConfig{Rate: 1})
	d.hot(1)
	if n := testing.AllocsPerRun(1000, func() { d.Allow(1, 0); d.Allow(2, 0) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
