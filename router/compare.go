package router

import (
	"fmt"

	"cacherouter/memproto"
	"cacherouter/quota"

	"github.com/cespare/xxhash/v2"
)

// Comparison says how the answer of a pool that sees a read compares with that of the pool
// that is asked.
type Comparison uint8

// The comparisons.
const (
	// Equal: both have the same value and flags, or neither has any.
	Equal Comparison = iota
	// Different: both have the item, with another value or other flags.
	Different
	// Missing: it misses what the other one has; Surplus: it has what the other one misses.
	Missing
	Surplus
	// Uncompared: one of the two was no answer.
	Uncompared
	NumComparisons // the number of comparisons, for tables indexed by them
)

var comparisonText = [NumComparisons]string{"equal", "different", "missing", "surplus", "failed"}

// String names the comparison in one word.
func (c Comparison) String() string { return comparisonText[c] }

// comparison is a read that two pools are asked. What is kept of an answer is a hash of it.
type comparison struct {
	seeing *worker // of the pool that sees it
	asked  *worker // of the other one
	key    []byte
	told   [2]answer // that of the pool that is asked, and of the one that sees it
	left   int
}

// answer is what is compared.
type answer struct {
	outcome memproto.Outcome
	value   uint64 // its hash; 0 if it was not told, as flags is empty
	flags   uint64
}

// newComparison returns one for a key, as servers know it.
func (w *worker) newComparison(asked *worker, key []byte) *comparison {
	c := w.compares.take()
	c.seeing, c.asked, c.left = w, asked, 2
	c.key = append(c.key[:0], key...)
	return c
}

// comparedKey is a key of a multiget, by its place in the window, whose answer is compared.
type comparedKey struct {
	place int
	of    *comparison
}

// leaveShadow shows the key that is asked for next to the pool that is to see it.
func (g *gather) leaveShadow(asked *worker, r *route, key []byte) {
	w := g.request.session.shadowed(r, key)
	if w == nil || g.touches() {
		return
	}
	var c *comparison
	if r.compares {
		c = w.newComparison(asked, key)
		g.compares = append(g.compares, comparedKey{len(g.asked), c})
	}
	w.shadowGet(key, c)
}

// compared tells what became of the keys of the window to what compares them. Failed says that
// there was no answer.
func (g *gather) compared(failed bool) {
	for _, k := range g.compares {
		o, block := memproto.Miss, []byte(nil)
		if !failed {
			block = g.block(&g.asked[k.place])
		}
		if len(block) > 0 {
			o = memproto.Hit
		}
		k.of.tell(0, block, o, failed)
	}
	g.compares = g.compares[:0]
}

// compared tells the request's answer to what compares it, if anything does. Failed says that
// it is no server's.
func (q *request) compared(b []byte, failed bool) {
	if c := q.compare; c != nil {
		q.compare = nil
		place := 0
		if q.shadow {
			place = 1
		}
		c.tell(place, b, memproto.OutcomeOf(q.verb, b), failed)
	}
}

// tell takes one of the two answers.
func (c *comparison) tell(place int, b []byte, o memproto.Outcome, failed bool) {
	a := answer{outcome: o}
	if failed || o != memproto.Hit && o != memproto.Miss {
		a.outcome = memproto.Faulty
	} else if found, ok := memproto.ParseFound(b); ok {
		a.value = xxhash.Sum64(found.Value)
		a.flags, _ = memproto.ParseUint(found.Flags)
	}
	c.told[place] = a
	if c.left--; c.left == 0 {
		c.conclude()
	}
}

// conclude compares the answers.
func (c *comparison) conclude() {
	w, one, other := c.seeing, &c.told[0], &c.told[1]
	result := Equal
	switch {
	case one.outcome == memproto.Faulty || other.outcome == memproto.Faulty:
		result = Uncompared
	case one.outcome == memproto.Hit && other.outcome == memproto.Miss:
		result = Missing
	case one.outcome == memproto.Miss && other.outcome == memproto.Hit:
		result = Surplus
	case *one != *other:
		result = Different
	}
	w.stats.Compared[result]++
	if result != Equal && result != Uncompared && w.r.unequal.Ask(w.now(), 1) == quota.Passed {
		c.log(result)
	}
	*c = comparison{key: c.key}
	w.compares.give(c)
}

// log says that answers differ, now and then. Keys are told only where requests are.
func (c *comparison) log(result Comparison) {
	w, name, key := c.seeing, "key", fmt.Sprintf("%q", c.key)
	if w.recorder == nil {
		name, key = "hash", fmt.Sprintf("%016x", xxhash.Sum64(c.key))
	}
	w.r.cfg.Log.Info("shadow differs", "pool", w.p.cfg.Name, "from", c.asked.p.cfg.Name, "how", result.String(), name, key)
}
