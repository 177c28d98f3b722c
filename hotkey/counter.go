package hotkey

import "time"

// byteUnit is the weight of 1 in the sketch of bytes, as a shift: 64 bytes.
const byteUnit = 6

// halfLife is how often a Counter halves its counts.
const halfLife = time.Second

// Counter counts the keys of one event loop, by requests and by bytes, and knows the
// largest values. It is for one goroutine, takes 180 KiB, and never more.
type Counter struct {
	requests *Sketch
	bytes    *Sketch
	large    *largest
	halved   time.Duration
}

// NewCounter makes a counter. The seed is as for [NewSketch].
func NewCounter(seed uint64) *Counter {
	return &Counter{requests: NewSketch(seed), bytes: NewSketch(seed), large: newLargest()}
}

// Touch counts a request and returns the key's count, as [Sketch.Touch] does.
func (c *Counter) Touch(hash uint64, key []byte) uint32 { return c.requests.Add(hash, key, 1) }

// Wrote says that a request that was counted is a write.
func (c *Counter) Wrote(hash uint64) { c.requests.Wrote(hash) }

// Moved counts n bytes of a value that came or went. What is less than the unit of the
// sketch is counted with the probability that makes it right on average.
func (c *Counter) Moved(hash uint64, key []byte, n int) {
	if n >= c.large.from {
		c.large.saw(hash, key, n)
	}
	rest := int(c.bytes.draw() >> (32 - byteUnit))
	if weight := (n + rest) >> byteUnit; weight > 0 {
		c.bytes.Add(hash, key, uint32(min(int64(weight), 1<<31)))
	}
}

// Sample is what a loop tells a [Collector]. The zero value is ready for use.
type Sample struct {
	requests Snapshot
	bytes    Snapshot
	large    largest
}

// Sample replaces the contents of dst by what came since the last call, and halves the
// counts when it is time to. Times are measured from any fixed instant. It is meant to
// be called ten times a second.
func (c *Counter) Sample(dst *Sample, now time.Duration) {
	c.requests.Snapshot(&dst.requests)
	c.bytes.Snapshot(&dst.bytes)
	c.large.sample(&dst.large, now)
	for range min((now-c.halved)/halfLife, 32) {
		c.requests.Halve()
		c.bytes.Halve()
	}
	if now-c.halved >= halfLife {
		c.halved = now
	}
}
