package compat

import (
	"encoding/binary"
	"math/bits"
)

// hsieh is Paul Hsieh's SuperFastHash, with the sign-extended byte of the original.
func hsieh(key []byte) uint64 {
	var h uint32
	for ; len(key) >= 4; key = key[4:] {
		h += uint32(binary.LittleEndian.Uint16(key))
		h = h<<16 ^ uint32(binary.LittleEndian.Uint16(key[2:]))<<11 ^ h
		h += h >> 11
	}
	switch len(key) {
	case 3:
		h += uint32(binary.LittleEndian.Uint16(key))
		h ^= h << 16
		h ^= signed(key[2]) << 18
		h += h >> 11
	case 2:
		h += uint32(binary.LittleEndian.Uint16(key))
		h ^= h << 11
		h += h >> 17
	case 1:
		h += uint32(key[0])
		h ^= h << 10
		h += h >> 1
	}
	h ^= h << 3
	h += h >> 5
	h ^= h << 4
	h += h >> 17
	h ^= h << 25
	h += h >> 6
	return uint64(h)
}

// murmur2 is Austin Appleby's MurmurHash2 with a seed made from the length.
func murmur2(key []byte) uint64 {
	const m = 0x5bd1e995
	n := uint32(len(key))
	h := 0xdeadbeef*n ^ n
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		h = h*m ^ (k^k>>24)*m
	}
	if len(key) > 0 {
		h = (h ^ uint32(tail(key))) * m
	}
	h = (h ^ h>>13) * m
	return uint64(h ^ h>>15)
}

// murmur3 is his MurmurHash3 for x86, 32 bits, with the same seed.
func murmur3(key []byte) uint64 {
	n := uint32(len(key))
	h := 0xdeadbeef * n
	scramble := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	for ; len(key) >= 4; key = key[4:] {
		h ^= scramble(binary.LittleEndian.Uint32(key))
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	h ^= scramble(uint32(tail(key))) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return uint64(h ^ h>>16)
}

const murmur64M = 0xc6a4a7935bd1e995

// murmur64A is his MurmurHash2 of 64 bits.
func murmur64A(key []byte, seed uint64) uint64 {
	h := seed ^ uint64(len(key))*murmur64M
	for ; len(key) >= 8; key = key[8:] {
		h = murmur64Mix(h, binary.LittleEndian.Uint64(key))
	}
	if len(key) > 0 {
		h = (h ^ tail(key)) * murmur64M
	}
	return murmur64End(h)
}

// murmur64Word is murmur64A of a word's eight bytes.
func murmur64Word(word, seed uint64) uint64 {
	length := uint64(8)
	return murmur64End(murmur64Mix(seed^length*murmur64M, word))
}

func murmur64Mix(h, k uint64) uint64 {
	k *= murmur64M
	k = (k ^ k>>47) * murmur64M
	return (h ^ k) * murmur64M
}

func murmur64End(h uint64) uint64 {
	h = (h ^ h>>47) * murmur64M
	return h ^ h>>47
}

// tail returns fewer than eight bytes as a little-endian number.
func tail(b []byte) uint64 {
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// jenkins is Bob Jenkins's lookup3 (hashlittle) with the initial value 13.
func jenkins(key []byte) uint64 {
	a := 0xdeadbeef + uint32(len(key)) + 13
	b, c := a, a
	for ; len(key) > 12; key = key[12:] {
		a, b, c = lookup3Mix(add12(a, b, c, key))
	}
	if len(key) > 0 {
		var last [12]byte
		copy(last[:], key)
		c = lookup3Final(add12(a, b, c, last[:]))
	}
	return uint64(c)
}

func add12(a, b, c uint32, k []byte) (uint32, uint32, uint32) {
	return a + binary.LittleEndian.Uint32(k), b + binary.LittleEndian.Uint32(k[4:]), c + binary.LittleEndian.Uint32(k[8:])
}

func lookup3Mix(a, b, c uint32) (uint32, uint32, uint32) {
	a, c = a-c^bits.RotateLeft32(c, 4), c+b
	b, a = b-a^bits.RotateLeft32(a, 6), a+c
	c, b = c-b^bits.RotateLeft32(b, 8), b+a
	a, c = a-c^bits.RotateLeft32(c, 16), c+b
	b, a = b-a^bits.RotateLeft32(a, 19), a+c
	c, b = c-b^bits.RotateLeft32(b, 4), b+a
	return a, b, c
}

func lookup3Final(a, b, c uint32) uint32 {
	c = c ^ b - bits.RotateLeft32(b, 14)
	a = a ^ c - bits.RotateLeft32(c, 11)
	b = b ^ a - bits.RotateLeft32(a, 25)
	c = c ^ b - bits.RotateLeft32(b, 16)
	a = a ^ c - bits.RotateLeft32(c, 4)
	b = b ^ a - bits.RotateLeft32(a, 14)
	return c ^ b - bits.RotateLeft32(b, 24)
}
