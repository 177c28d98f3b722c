package compat

import "hash/crc32"

// signed is a byte as C's char on x86 adds it to a 32-bit word: negative from 0x80 on.
func signed(c byte) uint32 { return uint32(int8(c)) }

// oneAtATime is Bob Jenkins's.
func oneAtATime(key []byte) uint64 {
	var h uint32
	for _, c := range key {
		h += signed(c)
		h += h << 10
		h ^= h >> 6
	}
	h += h << 3
	h ^= h >> 11
	h += h << 15
	return uint64(h)
}

const (
	fnvOffset32 = 2166136261
	fnvPrime32  = 16777619
	fnvOffset64 = 0xcbf29ce484222325
	fnvPrime64  = 0x100000001b3
)

func fnv1x32(key []byte) uint64 {
	h := uint32(fnvOffset32)
	for _, c := range key {
		h = h*fnvPrime32 ^ signed(c)
	}
	return uint64(h)
}

func fnv1ax32(key []byte) uint64 {
	h := uint32(fnvOffset32)
	for _, c := range key {
		h = (h ^ signed(c)) * fnvPrime32
	}
	return uint64(h)
}

func fnv1x64(key []byte) uint64 {
	h := uint64(fnvOffset64)
	for _, c := range key {
		h = h*fnvPrime64 ^ uint64(int8(c))
	}
	return uint64(uint32(h))
}

// fnv1ax64 is called 64 and computed in 32 bits, with the low halves of the constants.
func fnv1ax64(key []byte) uint64 {
	h := uint32(fnvOffset64 & 0xffffffff)
	for _, c := range key {
		h = (h ^ signed(c)) * uint32(fnvPrime64&0xffffffff)
	}
	return uint64(h)
}

// crc15 is what twemproxy calls crc32 and libmemcached crc: 15 bits of it. On a ring of 32 bits most servers get nothing.
func crc15(key []byte) uint64 { return uint64(crc32.ChecksumIEEE(key) >> 16 & 0x7fff) }

// crc16 is CRC-16/XMODEM in a register of 32 bits that is never cut to 16.
func crc16(key []byte) uint64 {
	var h uint32
	for _, c := range key {
		h = h<<8 ^ crc16Step(byte(h>>8)^c)
	}
	return uint64(h)
}

func crc16Step(c byte) uint32 {
	h := uint16(c) << 8
	for range 8 {
		carry := h >> 15
		h = h<<1 ^ carry*0x1021
	}
	return uint32(h)
}
