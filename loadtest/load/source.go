//go:build linux

package load

import (
	"math/rand/v2"
	"sync/atomic"
)

// source yields the requests of one lane, and false when there are no more. It is called by that
// lane only.
type source func() (call, bool)

// until yields what s yields until stop is set.
func (s source) until(stop *atomic.Bool) source {
	return func() (call, bool) {
		if stop.Load() {
			return call{}, false
		}
		return s()
	}
}

// mix yields left requests, endlessly when left is negative: sets and gets in the plan's ratio, of
// keys chosen uniformly, but for the share of the hot one.
func mix(p Plan, lane, left int) source {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(lane)))
	keys, hot, sets, all := uint32(p.Keys), uint32(p.Hot), uint32(p.Sets), uint32(p.Sets+p.Gets)
	return func() (call, bool) {
		if left == 0 {
			return call{}, false
		}
		left--
		q := call{op: opGet}
		if hot == 0 || rng.Uint32N(100) >= hot {
			q.key = rng.Uint32N(keys)
		}
		if rng.Uint32N(all) < sets {
			q.op = opSet
		}
		return q, true
	}
}

// sweep yields one set of each key i with i mod lanes = lane.
func sweep(p Plan, lane, lanes int) source {
	i := lane
	return func() (call, bool) {
		if i >= p.Keys {
			return call{}, false
		}
		q := call{op: opSet, key: uint32(i)}
		i += lanes
		return q, true
	}
}

// share is the part of n that the i-th of parts gets; the parts add up to n.
func share(n, i, parts int) int {
	if i < n%parts {
		return n/parts + 1
	}
	return n / parts
}
