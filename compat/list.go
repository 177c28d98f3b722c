package compat

import "iter"

// sampleSize is how many hashes stand for all of them where a placement has no ring.
const sampleSize = 1 << 18

// digestSamples is how many of them a digest covers.
const digestSamples = 1 << 12

// list is a placement by position in the list of servers: a function of the hash and the number of servers.
type list struct {
	home    func(hash uint64) int
	weights []int // of the servers, for the ranks after the home
	remix   bool  // whether those ranks need a fresh hash, because the home's is not a plain remainder
}

// Pick appends the home, and for every further rank the result of hash modulo the weight of the servers not yet picked. For the plain
// remainders this is where the program itself goes when it has ejected the earlier ones.
func (l *list) Pick(dst []int, hash uint64, n int) []int {
	from := len(dst)
	if n > 0 {
		dst = append(dst, l.home(hash))
	}
	for rank := 1; rank < min(n, len(l.weights)); rank++ {
		h := hash
		if l.remix {
			h = mix(hash + uint64(rank))
		}
		dst = append(dst, l.remaining(dst[from:], h))
	}
	return dst
}

// remaining returns the server at hash modulo the weight of those not taken, counted along the list.
func (l *list) remaining(taken []int, hash uint64) int {
	total := 0
	for _, w := range l.weights {
		total += w
	}
	for _, server := range taken {
		total -= l.weights[server]
	}
	at := int(hash % uint64(total))
next:
	for server, w := range l.weights {
		for _, t := range taken {
			if t == server {
				continue next
			}
		}
		if at -= w; at < 0 {
			return server
		}
	}
	panic("bug: weights do not add up")
}

// spans yields samples: consecutive hashes for remainders, which meet all of them equally, mixed ones otherwise.
func (l *list) spans(uint64) iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		for i := range uint64(sampleSize) {
			h := i
			if l.remix {
				h = mix(i)
			}
			if !yield(i, l.home(h)) {
				return
			}
		}
	}
}

func (l *list) exact() bool { return false }

func (l *list) digest(b []byte, c Config) []byte {
	for _, s := range c.Servers {
		b = appendServer(b, s)
	}
	for i, home := range l.spans(0) {
		if i == digestSamples {
			break
		}
		b = append(b, byte(home), byte(home>>8))
	}
	return b
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood).
func mix(x uint64) uint64 {
	z := (x + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// weightsOf returns the weights of the servers.
func weightsOf(servers []Server) []int {
	weights := make([]int, len(servers))
	for i, s := range servers {
		weights[i] = s.Weight
	}
	return weights
}

// ones returns n weights of 1.
func ones(n int) []int {
	weights := make([]int, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

// remainder returns the placement by hash modulo a table in which every server stands as often as it weighs.
func remainder(weights []int, servers []Server) (*list, error) {
	var table []uint16
	for i, w := range weights {
		if err := limit(len(table)+w, servers[i]); err != nil {
			return nil, err
		}
		for range w {
			table = append(table, uint16(i))
		}
	}
	home := func(hash uint64) int { return int(table[hash%uint64(len(table))]) }
	return &list{home: home, weights: weights}, nil
}

// jump returns the placement by the jump hash (Lamping and Veach, 2014).
func jump(n int) *list {
	return &list{home: func(hash uint64) int { return jumpHash(hash, n) }, weights: ones(n), remix: true}
}

func jumpHash(hash uint64, n int) int {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		hash = hash*2862933555777941757 + 1
		// The division is exact in the paper's double precision on every architecture: no sum follows that could be fused with it.
		j = int64(float64(b+1) * (float64(1<<31) / float64(hash>>33+1)))
	}
	return int(b)
}
