package admin

import (
	"math"
	"strconv"

	"cacherouter/latency"
)

// histogram is one as scrapers get it: below each of the bounds so many, and all in count.
type histogram struct {
	bounds *bounds
	below  []uint64 // up to each bound, that included
	count  uint64
	sum    float64
	fine   *latency.Histogram // for native buckets; nil if there are none
}

// bounds are the bounds of classic buckets, but for the infinite one. Each is also kept as
// text, as it is written over and over.
type bounds struct {
	at   []float64
	text []string
}

func newBounds(at ...float64) *bounds {
	b := &bounds{at: at}
	for _, x := range at {
		b.text = append(b.text, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return b
}

// Bounds of classic buckets: from 2^-16 s, about 15 µs, to 8 s, each twice, or four times the
// one before. They are all bounds of latency.Histogram too.
var (
	doubling    = powersOf(2)
	quadrupling = powersOf(4)
)

func powersOf(factor float64) *bounds {
	var at []float64
	for x := math.Exp2(-16); x <= 8; x *= factor {
		at = append(at, x)
	}
	return newBounds(at...)
}

// timing returns the histogram of durations.
func timing(h *latency.Histogram, b *bounds) *histogram {
	out := &histogram{bounds: b, below: make([]uint64, len(b.at)), sum: h.Sum().Seconds(), fine: h}
	next := 0
	for i := range latency.NumBuckets {
		out.count += h.Bucket(i)
		if next < len(b.at) && latency.Bound(i) == b.at[next] {
			out.below[next] = out.count
			next++
		}
	}
	return out
}
