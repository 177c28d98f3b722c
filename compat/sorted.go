package compat

import (
	"cmp"
	"iter"
	"slices"
)

// sorted is a placement of servers that the program puts into an order of its own.
type sorted struct {
	placer        // of the sorted servers
	at      []int // their positions in the configuration
	servers []Server
}

// sortedServers returns the servers as twemproxy sorts them when it looks for duplicates: by the length of their names, then by the names.
func sortedServers(servers []Server) *sorted {
	s := &sorted{at: make([]int, len(servers))}
	for i := range s.at {
		s.at[i] = i
	}
	slices.SortStableFunc(s.at, func(a, b int) int {
		x, y := twemproxyName(servers[a]), twemproxyName(servers[b])
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
	for _, i := range s.at {
		s.servers = append(s.servers, servers[i])
	}
	return s
}

// Pick picks by the positions in the configuration.
func (s *sorted) Pick(dst []int, hash uint64, n int) []int {
	from := len(dst)
	dst = s.placer.Pick(dst, hash, n)
	for i, at := range dst[from:] {
		dst[from+i] = s.at[at]
	}
	return dst
}

func (s *sorted) spans(largest uint64) iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		for last, home := range s.placer.spans(largest) {
			if !yield(last, s.at[home]) {
				return
			}
		}
	}
}

func (s *sorted) digest(b []byte, c Config) []byte {
	c.Servers = s.servers
	return s.placer.digest(b, c)
}
