// Package latency counts durations in buckets, so that quantiles can be told of millions of
// them from memory of a fixed size. The buckets are those of Prometheus' native histograms of
// schema 2: four to a doubling, with bounds at powers of the fourth root of two seconds. What
// is counted here is therefore shown there without loss, and a quantile is off by a tenth at
// most.
package latency

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// The buckets. What is at most Least counts as nothing: clocks that are read once a turn of
// an event loop do not tell it from nothing either. What is over Most has one bucket.
const (
	perDoubling = 4
	first       = -17 // exponent of the least bound
	last        = 6   // exponent of the greatest

	// NumBuckets is how many buckets a histogram has: the one up to Least, and the one
	// beyond Most, included.
	NumBuckets = (last-first)*perDoubling + 2
	// Schema is the schema of the buckets in Prometheus' terms.
	Schema = 2
)

// Least and Most are the bounds of the buckets: 2^-17 s, which is 7.6 µs, and 64 s.
const (
	Least = time.Second >> -first
	Most  = time.Second << last
)

// Histogram counts durations. The zero value is empty and ready. It is a plain value: a copy
// is a snapshot. One goroutine at a time may use it.
type Histogram struct {
	counts [NumBuckets]uint64
	sum    time.Duration
}

// bounds are the upper bounds of the buckets but the last, as durations.
var bounds = func() (all [NumBuckets - 1]time.Duration) {
	for i := range all {
		all[i] = time.Duration(Bound(i) * float64(time.Second))
	}
	return all
}()

// A duration is looked up by its length in bits and the three bits behind the first: cell says
// which bucket the shortest of those durations is in. The others are in that one or the next.
const cells = 8 * 64

var cell = func() (all [cells]uint8) {
	for i := range all {
		all[i] = uint8(slices.IndexFunc(bounds[:], func(b time.Duration) bool { return b >= shortest(i) }))
	}
	return all
}()

// cellOf returns the cell of a duration from Least to Most.
func cellOf(d time.Duration) int {
	n := bits.Len64(uint64(d))
	return n<<3 | int(d>>(n-4))&7
}

// shortest returns the shortest duration of a cell, as far as there are any to look up.
func shortest(cell int) time.Duration {
	n := min(max(cell>>3, 4), bits.Len64(uint64(Most)))
	return min(time.Duration(8|cell&7)<<(n-4), Most)
}

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	switch {
	case d <= Least:
		return 0
	case d > Most:
		return NumBuckets - 1
	}
	i := int(cell[cellOf(d)])
	if d > bounds[i] {
		i++
	}
	return i
}

// Observe counts a duration. It does not allocate.
func (h *Histogram) Observe(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.sum += d
}

// Add counts what another histogram has counted.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Sum returns the sum of the durations, exactly.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Since returns what was counted after before, an earlier copy of h.
func (h *Histogram) Since(before *Histogram) Histogram {
	d := *h
	for i, n := range before.counts {
		d.counts[i] -= n
	}
	d.sum -= before.sum
	return d
}

// Bucket returns how many durations are in bucket i, from 0 to NumBuckets-1. They are over the
// Bound of the bucket before it, and at most its own.
func (h *Histogram) Bucket(i int) uint64 { return h.counts[i] }

// Bound returns the upper bound of bucket i in seconds; that of the last is +Inf. It is
// 2^((i-68)/4).
func Bound(i int) float64 {
	if i >= NumBuckets-1 {
		return math.Inf(1)
	}
	return math.Exp2(first + float64(i)/perDoubling)
}

// Quantile returns the duration that the share q of all, from 0 to 1, do not exceed: 0.5 is
// the median. Within a bucket the durations are taken to be spread evenly. It is 0 if nothing
// was counted, and Most if the quantile is beyond that.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := min(max(q, 0), 1) * float64(h.Count())
	before := 0.0
	for i, c := range h.counts[:NumBuckets-1] {
		n := float64(c)
		if c > 0 && before+n >= rank {
			return within(i, max(0, rank-before)/n)
		}
		before += n
	}
	if before == 0 && h.counts[NumBuckets-1] == 0 {
		return 0
	}
	return Most
}

// within returns the duration some share of the way through a bucket.
func within(i int, share float64) time.Duration {
	low := 0.0
	if i > 0 {
		low = Bound(i - 1)
	}
	return time.Duration((low + share*(Bound(i)-low)) * float64(time.Second))
}
