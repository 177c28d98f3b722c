package workload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Choice is how keys are chosen, in one word:
//
//	uniform                     all as often
//	zipf:S                      key i as often as (i+1)^-S, S from 0 to 10
//	sequential                  one after the other, and again
//	hotspot:SHARE:KEYS:SECONDS  the share of the requests, 0 to 1, is for so many neighbouring keys, which
//	                            are others each time so many seconds have passed; the rest is uniform
//
// The empty Choice is uniform.
type Choice string

// Validate says what is wrong with the word.
func (c Choice) Validate() error {
	_, err := c.parse()
	return err
}

// picked is a parsed Choice.
type picked struct {
	kind    string
	numbers []float64
}

func (c Choice) parse() (p picked, err error) {
	text := string(c)
	wanted := map[string]int{"": 0, "uniform": 0, "zipf": 1, "sequential": 0, "hotspot": 3}
	n, known := wanted[name(text)]
	if !known {
		return p, fmt.Errorf("keys cannot be chosen by %q, only uniform, zipf:S, sequential or hotspot:SHARE:KEYS:SECONDS", text)
	}
	p.kind = name(text)
	if p.numbers, err = cut(text, n); err != nil {
		return p, fmt.Errorf("cannot choose keys: %w", err)
	}
	switch x := p.numbers; {
	case p.kind == "zipf" && !(x[0] >= 0 && x[0] <= 10):
		return p, fmt.Errorf("cannot choose keys: %q has an exponent that is not in 0..10", text)
	case p.kind == "hotspot" && !(x[0] >= 0 && x[0] <= 1 && x[1] >= 1 && x[2] > 0):
		return p, fmt.Errorf("cannot choose keys: %q needs a share in 0..1, a key at least, and a time over 0", text)
	}
	return p, nil
}

// Chooser returns the next key, 0 to n-1, of a request that is made so long after the load began.
type Chooser func(at time.Duration) int

// Chooser returns one of several that choose among n keys together, the part-th of parts. Only the
// sequential ones differ by their part. The word must be valid.
func (c Choice) Chooser(n int, rng *rand.Rand, part, parts int) Chooser {
	p, err := c.parse()
	if err != nil {
		panic("bug: " + err.Error())
	}
	switch p.kind {
	case "zipf":
		z := NewZipf(p.numbers[0], n)
		return func(time.Duration) int { return z.Draw(rng) - 1 }
	case "sequential":
		next := part - parts
		return func(time.Duration) int {
			next = (next + parts) % n
			return next
		}
	case "hotspot":
		return hotspot(p.numbers, n, rng)
	}
	return func(time.Duration) int { return rng.IntN(n) }
}

// hotspot moves to the keys that follow the last ones, so that none is hot again before all have been.
func hotspot(numbers []float64, n int, rng *rand.Rand) Chooser {
	share, keys := numbers[0], min(int(numbers[1]), n)
	stay := time.Duration(numbers[2] * float64(time.Second))
	return func(at time.Duration) int {
		if rng.Float64() >= share {
			return rng.IntN(n)
		}
		first := int(at/stay) * keys
		return (first + rng.IntN(keys)) % n
	}
}
