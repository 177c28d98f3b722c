package hotkey

import (
	"math"
	"math/bits"
)

// Dimensions of a sketch: 16 KiB, one cache line for a bucket, and 4 KiB beside them.
const (
	numBuckets = 256
	numSlots   = 8
)

// bucket counts up to eight keys. A slot with count 0 is free.
type bucket struct {
	prints [numSlots]uint32
	counts [numSlots]uint32
}

// Sketch counts the keys that come most often. It is a variant of HeavyKeeper (Gong et
// al., "HeavyKeeper: An Accurate Algorithm for Finding Top-k Elephant Flows", USENIX ATC
// 2018) with one array of buckets that are a cache line each: a key that has no slot in
// its bucket wears down the smallest count there with probability 1.08^-count, and takes
// the slot when nothing is left of it. So a count is never too high, but for keys with
// equal fingerprints, and the bounds of the paper do not apply as they stand.
//
// A sketch is for one goroutine. It must be made by NewSketch.
type Sketch struct {
	buckets *[numBuckets]bucket
	ends    [numBuckets]uint64           // the lowest byte of each fingerprint, that of slot 0 the lowest
	least   [numBuckets]uint8            // the slot with the smallest count, which the next key contends for
	named   [numBuckets * numSlots]uint8 // index in names plus 1, 0 for none
	seed    uint64
	random  uint64
	total   uint64 // all weights up to the last snapshot, halved as the counts are
	added   uint64 // all weights since
	nameAt  uint32 // the count from which a key is kept by name
	names   []name // up to maxNames
}

// NewSketch makes a sketch. The seed is a secret random number, so that nobody can find
// keys that share a bucket; the sketches that a Collector merges need not share it.
func NewSketch(seed uint64) *Sketch {
	return &Sketch{
		buckets: new([numBuckets]bucket),
		seed:    seed,
		random:  seed | 1,
		nameAt:  minNameAt,
		names:   make([]name, 0, maxNames),
	}
}

// wear[c] is the chance of 2^32 that a count of c is worn down by one.
var wear = func() (t [256]uint32) {
	for c := range t {
		t[c] = uint32(math.MaxUint32 * math.Pow(1.08, -float64(c)))
	}
	return t
}()

// Touch counts a request on a key, and returns the key's count, 0 when it has none. Hash
// is the key's hash, any that callers place keys by. The key is copied if at all, up to
// 250 bytes of it.
func (s *Sketch) Touch(hash uint64, key []byte) uint32 { return s.Add(hash, key, 1) }

// Add is Touch with a weight, such as the bytes of the value in some unit.
func (s *Sketch) Add(hash uint64, key []byte, weight uint32) uint32 {
	s.added += uint64(weight)
	print, at := s.place(hash)
	b := &s.buckets[at]
	for like := s.alike(at, print); like != 0; like &= like - 1 {
		i := bits.TrailingZeros64(like) / 8
		if b.prints[i] == print && b.counts[i] != 0 {
			c := b.counts[i] + weight
			if c < weight {
				c = math.MaxUint32
			}
			b.counts[i] = c
			if i == int(s.least[at]) {
				s.findLeast(at)
			}
			if slot := at*numSlots + i; c >= s.nameAt && s.named[slot] == 0 {
				s.name(slot, hash, key, c)
			}
			return c
		}
	}
	return s.contend(at, print, weight)
}

// alike returns the slots of a bucket whose fingerprints end like one, as the highest bits of bytes;
// now and then also the one behind such a slot. Most keys have no slot, and are told so by a few
// operations on all eight at once.
func (s *Sketch) alike(at int, print uint32) uint64 {
	const lowest, highest = 0x0101010101010101, 0x8080808080808080
	x := s.ends[at] ^ uint64(uint8(print))*lowest // a byte of 0 for each that is alike
	return (x - lowest) &^ x & highest
}

// place returns a key's fingerprint and bucket. The two halves of a product with a
// secret factor are mixed, so that hashes with few or only low bits do as well.
func (s *Sketch) place(hash uint64) (print uint32, at int) {
	hi, lo := bits.Mul64(hash^s.seed, 0x9e3779b97f4a7c15)
	h := hi ^ lo
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return uint32(h), int(h >> 56)
}

// contend gives a key without a slot a chance to get one. Weights are compared in units
// of the one that comes: with weights of 300, two requests are not a count of 600 that
// nothing wears down.
func (s *Sketch) contend(at int, print, weight uint32) uint32 {
	b := &s.buckets[at]
	least := int(s.least[at])
	c := b.counts[least]
	times := c
	if weight > 1 {
		times /= weight
	}
	switch {
	case times >= uint32(len(wear)) || c > 0 && s.draw() > wear[times]:
		return 0
	case c > weight:
		b.counts[least] = c - weight
		return 0
	case c == weight && c > 0:
		weight = 1 // what is left of the two, and a start
	default:
		weight -= c
	}
	s.unname(at*numSlots + least)
	b.prints[least], b.counts[least] = print, weight
	shift := 8 * least
	s.ends[at] = s.ends[at]&^(0xff<<shift) | uint64(uint8(print))<<shift
	if weight > c {
		s.findLeast(at)
	}
	return weight
}

// findLeast notes which count of a bucket is the smallest. It is called when the one that was has
// grown: what else is done to counts leaves it the smallest, also halving all of them.
func (s *Sketch) findLeast(at int) {
	b := &s.buckets[at]
	least := 0
	for i := 1; i < numSlots; i++ {
		if b.counts[i] < b.counts[least] {
			least = i
		}
	}
	s.least[at] = uint8(least)
}

// draw returns a random number (xorshift64, Marsaglia 2003).
func (s *Sketch) draw() uint32 {
	x := s.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	s.random = x
	return uint32(x >> 32)
}

// Halve halves all counts. Called once a second it makes a count that of the last one to
// two seconds, in which older requests weigh less.
func (s *Sketch) Halve() {
	for i := range s.buckets {
		b := &s.buckets[i]
		for j := range b.counts {
			if b.counts[j] >>= 1; b.counts[j] == 0 {
				s.unname(i*numSlots + j)
			}
		}
	}
	for i := range s.names {
		s.names[i].seen /= 2
	}
	s.total /= 2
	s.nameAt = max(minNameAt, s.nameAt/2)
}
