package compat

import (
	"fmt"
	"iter"
	"math"
	"strconv"
)

const (
	// wholeWeight is the weight of a server that mcrouter gives 1; so 0.25 is 2500.
	wholeWeight = 10000

	weightTries = 32
	weightSeed  = 0xface2014
)

// newMcrouterWeighted follows mcrouter's hash function WeightedCh3: furc's server is taken with the probability that its weight is; if it is not
// the key is hashed again with a number behind it. So the hash is furc's of the key with the number that was taken.
func newMcrouterWeighted(c Config) (*Placement, error) {
	n := len(c.Servers)
	limits := make([]uint64, n) // what is below them is taken
	for i, s := range c.Servers {
		if s.Weight > wholeWeight {
			return nil, fmt.Errorf("server %q has weight %d: want 1 to %d, which is mcrouter's 1.0", s.Addr, s.Weight, wholeWeight)
		}
		limits[i] = uint64(float64(s.Weight) / wholeWeight * math.MaxUint32)
	}
	if n > 1<<furcShift || len(c.Seed) > maxSalt {
		return nil, fmt.Errorf("%d servers, or a salt of %d bytes, are too many", n, len(c.Seed))
	}
	salt := c.Seed
	hash := func(key []byte) uint64 {
		var b [maxSalted + 2]byte
		end := copy(b[:maxSalted-maxSalt], routingKey(key))
		end += copy(b[end:], salt)
		k := b[:end]
		for try := 0; ; try++ {
			h := murmur64A(k, furcSeed)
			if try == weightTries-1 || uint64(spooky32(k, weightSeed)) < limits[furc(h, n)] {
				return h
			}
			b[end], b[end+1] = '0'+byte(try%10), '0'+byte(try/10) // the digits come from behind
			if k = b[:end+1]; try > 9 {
				k = b[:end+2]
			}
		}
	}
	home := func(hash uint64) int { return furc(hash, n) }
	placed := &drawn{list: list{home: home, weights: weightsOf(c.Servers), remix: true}, hash: hash}
	return &Placement{config: c, hashed: "ch3-weighted", hash: hash, placer: placed}, nil
}

// drawn is a placement whose weights are in the hash of the key.
type drawn struct {
	list
	hash func([]byte) uint64
}

// spans yields samples: the homes of numbers as keys.
func (d *drawn) spans(uint64) iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		var key []byte
		for i := range uint64(sampleSize) {
			key = strconv.AppendUint(key[:0], i, 10)
			if !yield(i, d.home(d.hash(key))) {
				return
			}
		}
	}
}
