package health

import "time"

// numBuckets is in how many parts the window slides.
const numBuckets = 6

// window counts requests over the last Window; what is older does not count at all, so
// nobody stays excluded for what was long ago.
type window struct {
	buckets [numBuckets]bucket
	current int64 // number of the newest bucket since the epoch
}

type bucket struct {
	ok, errors int
	latency    time.Duration
}

// advance drops what has left a window of the given length.
func (w *window) advance(length time.Duration, now time.Time) {
	n := now.UnixNano() / int64(length/numBuckets)
	for i := max(w.current+1, n-numBuckets+1); i <= n; i++ {
		w.buckets[i%numBuckets] = bucket{}
	}
	w.current = max(w.current, n)
}

func (w *window) add(o Observation) {
	b := &w.buckets[w.current%numBuckets]
	b.ok += o.OK
	b.errors += o.Errors()
	b.latency += o.Latency
}

func (w *window) sum() bucket {
	var s bucket
	for _, b := range w.buckets {
		s.ok += b.ok
		s.errors += b.errors
		s.latency += b.latency
	}
	return s
}

// requests is how many there were.
func (b bucket) requests() int { return b.ok + b.errors }

// cost is the mean latency, each error counted as one of errorCost: a server that fails
// fast must not look attractive. It is 0 when there were no requests.
func (b bucket) cost(errorCost time.Duration) time.Duration {
	n := b.requests()
	if n == 0 {
		return 0
	}
	return (b.latency + time.Duration(b.errors)*errorCost) / time.Duration(n)
}

// failing reports whether at least maxErrors per mille of them failed.
func (b bucket) failing(maxErrors int) bool {
	return b.errors*1000 >= maxErrors*b.requests()
}
