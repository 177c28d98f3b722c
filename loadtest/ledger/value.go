package ledger

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// filler is repeated behind the head of a value, as long as its size wants.
const filler = "abcdefghijklmnopqrstuvwxyz0123456789"

// compose returns the value of a key's version: key, version, a checksum over all the rest, filler.
func compose(key string, version uint64, size int) []byte {
	b := fmt.Appendf(nil, "%s %d 00000000 ", key, version)
	sum := len(b) - len("00000000 ")
	for len(b) < size {
		b = append(b, filler[:min(len(filler), size-len(b))]...)
	}
	copy(b[sum:], fmt.Sprintf("%08x", checksum(b, sum)))
	return b
}

// checksum is over everything but the checksum itself, which is at the given place.
func checksum(b []byte, at int) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:at]), crc32.IEEETable, b[at+8:])
}

// parse returns the version in a value, and whether it is one of the key's and whole.
func parse(key string, value []byte) (version uint64, ok bool) {
	rest, ok := bytes.CutPrefix(value, []byte(key+" "))
	if !ok {
		return 0, false
	}
	var sum uint32
	digits, rest, _ := bytes.Cut(rest, []byte{' '})
	if len(rest) < len("00000000 ") {
		return 0, false
	}
	if _, err := fmt.Sscanf(string(digits)+" "+string(rest[:8]), "%d %x", &version, &sum); err != nil {
		return 0, false
	}
	at := len(key) + 1 + len(digits) + 1
	return version, checksum(value, at) == sum
}
