package compat

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
)

const (
	furcShift = 23 // bits between two looked at, and the binary logarithm of the largest pool
	furcTries = 32
	furcSeed  = 4193360111

	hashStop = "|#|"
)

// furc places a hash on one of n servers by mcrouter's consistent hash "furc" (Ch3): a walk down a binary tree over the positions, steered by a
// stream of bits whose first 64 are the key's hash and each next 64 the hash of those before. Servers may be added or removed only at the end.
func furc(hash uint64, n int) int {
	if n <= 1 {
		return 0
	}
	stream := bitStream{first: hash, word: hash}
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

// bitStream yields bits by index. The walk goes forward, or back to the first word, so that one word is enough to keep besides that.
type bitStream struct {
	first, word uint64
	index       int // of word
}

func (s *bitStream) bit(i int) int {
	if i/64 < s.index {
		s.word, s.index = s.first, 0
	}
	for ; s.index < i/64; s.index++ {
		s.word = murmur64Word(s.word, furcSeed)
	}
	return int(s.word >> (i % 64) & 1)
}

// ch3 is the hash of a key that furc places.
func ch3(key []byte) uint64 { return murmur64A(routingKey(key), furcSeed) }

// crc31 is the CRC-32 of a key as mcrouter divides it.
func crc31(key []byte) uint64 { return uint64(crc32.ChecksumIEEE(routingKey(key)) & math.MaxInt32) }

// maxSalt is the longest salt, in bytes, and maxSalted the longest key with one; mcrouter's keys have 250 bytes at most.
const (
	maxSalt   = 250
	maxSalted = 512
)

// salted returns one of the two with a salt behind the routing key.
func salted(hash, salt string) (func(key []byte) uint64, error) {
	if len(salt) > maxSalt {
		return nil, fmt.Errorf("salt %.20q: has %d bytes, at most %d are possible", salt, len(salt), maxSalt)
	}
	if hash == "crc31" {
		tail := []byte(salt)
		return func(key []byte) uint64 {
			return uint64(crc32.Update(crc32.ChecksumIEEE(routingKey(key)), crc32.IEEETable, tail) & math.MaxInt32)
		}, nil
	}
	return func(key []byte) uint64 {
		var b [maxSalted]byte // of a longer key than mcrouter takes only so much is hashed as there is room for
		n := copy(b[:maxSalted-maxSalt], routingKey(key))
		return murmur64A(b[:n+copy(b[n:], salt)], furcSeed)
	}, nil
}

// routingKey is what mcrouter hashes of a key: without a routing prefix /region/cluster/, up to the hash stop.
func routingKey(key []byte) []byte {
	if len(key) > 0 && key[0] == '/' {
		if region := bytes.IndexByte(key[1:], '/'); region >= 0 {
			if cluster := bytes.IndexByte(key[region+2:], '/'); cluster >= 0 {
				key = key[region+cluster+3:]
			}
		}
	}
	if stop := bytes.Index(key, []byte(hashStop)); stop >= 0 {
		key = key[:stop]
	}
	return key
}
