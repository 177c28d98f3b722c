package compat

import (
	"encoding/binary"
	"math/bits"
)

// spooky32 is the 32-bit form of SpookyHash V2 (Bob Jenkins, 2012) of a key, with one seed for both halves.
func spooky32(key []byte, seed uint64) uint32 {
	if len(key) < 192 {
		return spookyShort(key, seed)
	}
	return spookyLong(key, seed)
}

const spookyConst = 0xdeadbeefdeadbeef

// spookyShort is its way with short keys.
func spookyShort(key []byte, seed uint64) uint32 {
	length := uint64(len(key))
	a, b, c, d := seed, seed, uint64(spookyConst), uint64(spookyConst)
	mix := func() {
		for _, n := range shortMix { // a multiple of four, so the names are right again
			c = bits.RotateLeft64(c, n) + d
			a ^= c
			a, b, c, d = b, c, d, a
		}
	}
	for ; len(key) >= 32; key = key[32:] {
		c += binary.LittleEndian.Uint64(key)
		d += binary.LittleEndian.Uint64(key[8:])
		mix()
		a += binary.LittleEndian.Uint64(key[16:])
		b += binary.LittleEndian.Uint64(key[24:])
	}
	if len(key) >= 16 {
		c += binary.LittleEndian.Uint64(key)
		d += binary.LittleEndian.Uint64(key[8:])
		mix()
		key = key[16:]
	}
	d += length << 56
	if len(key) == 0 {
		c += spookyConst
		d += spookyConst
	}
	for i, x := range key {
		if i < 8 {
			c += uint64(x) << (8 * i)
		} else {
			d += uint64(x) << (8 * (i - 8))
		}
	}
	for _, n := range shortEnd { // eleven, so what began as a is b
		d ^= c
		c = bits.RotateLeft64(c, n)
		d += c
		a, b, c, d = b, c, d, a
	}
	return uint32(b)
}

// The rotations of the hash's steps.
var (
	shortMix = [...]int{50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36}
	shortEnd = [...]int{15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63}
	longMix  = [...]int{11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46}
	longEnd  = [...]int{44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54}
)

// spookyLong is its way with keys of 192 bytes and more.
func spookyLong(key []byte, seed uint64) uint32 {
	const words, block = 12, 96
	var h [words]uint64
	for i := range h {
		h[i] = seed
		if i%3 == 2 {
			h[i] = spookyConst
		}
	}
	for ; len(key) >= block; key = key[block:] {
		for i := range words {
			h[i] += binary.LittleEndian.Uint64(key[8*i:])
			h[(i+2)%words] ^= h[(i+10)%words]
			h[(i+11)%words] ^= h[i]
			h[i] = bits.RotateLeft64(h[i], longMix[i])
			h[(i+11)%words] += h[(i+1)%words]
		}
	}
	var last [block]byte
	last[block-1] = byte(copy(last[:], key))
	for i := range h {
		h[i] += binary.LittleEndian.Uint64(last[8*i:])
	}
	for range 3 {
		for i := range words {
			h[(i+11)%words] += h[(i+1)%words]
			h[(i+2)%words] ^= h[(i+11)%words]
			h[(i+1)%words] = bits.RotateLeft64(h[(i+1)%words], longEnd[i])
		}
	}
	return uint32(h[0])
}
