package latency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every duration is in the one bucket whose bounds are around it.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(2*Most)).Draw(t, "d") >> rapid.IntRange(0, 37).Draw(t, "shift"))
		i := bucketOf(d)
		if s := d.Seconds(); s > Bound(i) || i > 0 && s <= Bound(i-1) {
			t.Fatalf("%v is in bucket %d, from over %v s to %v s", d, i, Bound(max(0, i-1)), Bound(i))
		}
	})
}

// Durations at and next to the bounds.
func TestBucketsAtTheirBounds(t *testing.T) {
	for i := range NumBuckets - 1 {
		at := time.Duration(math.Floor(Bound(i) * 1e9))
		if got := bucketOf(at); got != i {
			t.Errorf("%v is in bucket %d, want %d", at, got, i)
		}
		if got := bucketOf(at + 1); got != i+1 {
			t.Errorf("%v is in bucket %d, want %d", at+1, got, i+1)
		}
	}
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, Least} {
		if got := bucketOf(d); got != 0 {
			t.Errorf("%v is in bucket %d, want the first", d, got)
		}
	}
	if got := bucketOf(math.MaxInt64); got != NumBuckets-1 {
		t.Errorf("the longest duration is in bucket %d, want the last", got)
	}
}

func TestBounds(t *testing.T) {
	f := func(i int, want float64) {
		t.Helper()
		if got := Bound(i); got != want {
			t.Errorf("bound %d is %v, want %v", i, got, want)
		}
	}
	f(0, math.Exp2(-17))
	f(4, math.Exp2(-16))
	f(68, 1)
	f(69, math.Exp2(0.25))
	f(NumBuckets-2, 64)
	f(NumBuckets-1, math.Inf(1))
	if Least != 7629*time.Nanosecond || Most != 64*time.Second {
		t.Errorf("the bounds are %v and %v", Least, Most)
	}
}

// Quantiles of log-normal latencies are within a bucket's width of the true ones.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	all := make([]time.Duration, 100_000)
	var sum time.Duration
	for i := range all {
		all[i] = time.Duration(float64(200*time.Microsecond) * math.Exp(rng.NormFloat64()))
		h.Observe(all[i])
		sum += all[i]
	}
	slices.Sort(all)
	if h.Count() != uint64(len(all)) || h.Sum() != sum {
		t.Errorf("%d durations of %v in all, want %d of %v", h.Count(), h.Sum(), len(all), sum)
	}
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 0.999} {
		want := all[int(q*float64(len(all)))]
		got := h.Quantile(q)
		if off := math.Abs(float64(got)/float64(want) - 1); off > 0.1 {
			t.Errorf("the %v quantile is %v, want about %v", q, got, want)
		}
	}
}

func TestQuantilesOfLittle(t *testing.T) {
	f := func(h *Histogram, q float64, low, high time.Duration) {
		t.Helper()
		if got := h.Quantile(q); got < low || got > high {
			t.Errorf("the %v quantile is %v, want %v to %v", q, got, low, high)
		}
	}
	var h Histogram
	f(&h, 0.5, 0, 0)
	h.Observe(0)
	f(&h, 0.5, 0, Least)
	f(&h, 1, 0, Least)
	h = Histogram{}
	h.Observe(time.Millisecond)
	f(&h, 0, 800*time.Microsecond, 1200*time.Microsecond)
	f(&h, 1, 800*time.Microsecond, 1200*time.Microsecond)
	f(&h, 7, 800*time.Microsecond, 1200*time.Microsecond)
	f(&h, -7, 800*time.Microsecond, 1200*time.Microsecond)
	h = Histogram{}
	h.Observe(time.Hour)
	f(&h, 0.5, Most, Most)
}

func TestAddAndSince(t *testing.T) {
	var a, b Histogram
	a.Observe(time.Millisecond)
	before := a
	b.Observe(time.Second)
	b.Observe(time.Microsecond)
	a.Add(&b)
	if a.Count() != 3 || a.Sum() != time.Second+time.Millisecond+time.Microsecond {
		t.Errorf("the sum has %d durations of %v", a.Count(), a.Sum())
	}
	if d := a.Since(&before); d != b {
		t.Errorf("since then %v were counted, want %v", d, b)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(1000, func() { h.Observe(123 * time.Microsecond) }); n != 0 {
		t.Errorf("Observe allocates %v times", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	d := time.Duration(0)
	for b.Loop() {
		d = (d + 7919) & (1<<21 - 1)
		h.Observe(d)
	}
}

func ExampleHistogram() {
	var h Histogram
	for i := range 1000 {
		h.Observe(time.Duration(i) * time.Microsecond)
	}
	fmt.Println(h.Count(), h.Sum(), h.Quantile(0.5).Round(10*time.Microsecond))
	// Output: 1000 499.5ms 500µs
}
