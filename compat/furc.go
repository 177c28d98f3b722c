package compat

import (
	"bytes"
	"math/bits"
)

const (
	furcShift = 23 // bits between two looked at, and the binary logarithm of the largest pool
	furcTries = 32
	furcSeed  = 4193360111
)

// furc places a hash on one of n servers by mcrouter's consistent hash "furc" (Ch3): a walk down a binary tree over the positions, steered by a
// stream of bits whose first 64 are the key's hash and each next 64 the hash of those before. Servers may be added or removed only at the end.
func furc(hash uint64, n int) int {
	if n <= 1 {
		return 0
	}
	stream := bitStream{word: hash}
	depth := bits.Len(uint(n - 1))
	at := depth
	for range furcTries {
		for stream.bit(at) == 0 {
			if depth--; depth == 0 {
				return 0
			}
			at = depth
		}
		at += furcShift
		position := 1
		for range depth - 1 {
			position = position<<1 | stream.bit(at)
			at += furcShift
		}
		if position < n {
			return position
		}
	}
	return 0
}

// bitStream yields bits by index. The walk goes back at times, by less than a stretch of the stream it has already passed, so all words are kept.
type bitStream struct {
	word  uint64
	later [furcTries * (furcShift + 1) * furcShift / 64]uint64
	known int
}

func (s *bitStream) bit(i int) int {
	word := i / 64
	if word == 0 {
		return int(s.word >> i & 1)
	}
	for ; s.known < word; s.known++ {
		before := s.word
		if s.known > 0 {
			before = s.later[s.known-1]
		}
		s.later[s.known] = murmur64Word(before, furcSeed)
	}
	return int(s.later[word-1] >> (i % 64) & 1)
}

// ch3 hashes what mcrouter calls the routing key: without a routing prefix /region/cluster/, up to the hash stop |#|.
func ch3(key []byte) uint64 {
	if len(key) > 0 && key[0] == '/' {
		if region := bytes.IndexByte(key[1:], '/'); region >= 0 {
			if cluster := bytes.IndexByte(key[region+2:], '/'); cluster >= 0 {
				key = key[region+cluster+3:]
			}
		}
	}
	if stop := bytes.Index(key, []byte("|#|")); stop >= 0 {
		key = key[:stop]
	}
	return murmur64A(key, furcSeed)
}
