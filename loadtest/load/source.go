//go:build linux

package load

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"cacherouter/loadtest/workload"
)

// source yields the requests of one driver that are made so many nanoseconds after the load began, and false
// when there are no more. Each part of a multiget but the last says that more follows. It is called by that
// driver only.
type source func(at int64) (call, bool)

// until yields what s yields until stop is set, but never half a multiget.
func (s source) until(stop *atomic.Bool) source {
	amid := false
	return func(at int64) (call, bool) {
		if !amid && stop.Load() {
			return call{}, false
		}
		q, ok := s(at)
		amid = q.more
		return q, ok
	}
}

// mix yields left requests of the plan's mix, endlessly when left is negative, as one of several drivers.
func mix(p Plan, part, parts, left int) source {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(part)))
	choose, live := p.Choice.Chooser(p.Keys, rng, part, parts), p.Lives.Chooser(rng)
	sets, gets := p.Ratio.Sets, p.Ratio.Sets+p.Ratio.Gets
	all, more := gets+p.Ratio.Multigets, 0
	return func(at int64) (call, bool) {
		q := call{op: opGet}
		switch {
		case more > 0:
			more--
			q.more = more > 0
		case left == 0:
			return call{}, false
		default:
			left--
			if kind := rng.IntN(all); kind < sets {
				q.op, q.ttl = opSet, live()
			} else if kind >= gets {
				more = p.multigetKeys() - 1
				q.more = more > 0
			}
		}
		q.key = uint32(choose(time.Duration(at)))
		return q, true
	}
}

// sweep yields one set of each key i with i mod parts = part.
func sweep(p Plan, part, parts int) source {
	live := p.Lives.Chooser(rand.New(rand.NewPCG(p.Seed, uint64(part))))
	next := workload.Choice("sequential").Chooser(p.Keys, nil, part, parts)
	left := share(p.Keys, part, parts)
	return func(int64) (call, bool) {
		if left == 0 {
			return call{}, false
		}
		left--
		return call{op: opSet, key: uint32(next(0)), ttl: live()}, true
	}
}

// share is the part of n that the i-th of parts gets; the parts add up to n.
func share(n, i, parts int) int {
	if i < n%parts {
		return n/parts + 1
	}
	return n / parts
}
