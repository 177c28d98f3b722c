package reactor

import "math/bits"

// Buffers between connections and their loop. An idle connection holds none: it takes
// one when bytes must be kept and gives it back when they are gone. The smallest are small, as
// thousands of clients may be answered in one turn, and each is given one for that.
const (
	minShift   = 11 // the smallest buffer is 2 KiB
	maxShift   = 21 // buffers over 2 MiB are left to the garbage collector
	bufferSize = 1 << minShift
	stockBytes = 4 << 20 // kept for reuse by a loop, per size
)

// buffers is a loop's stock of empty buffers, by size in powers of two.
type buffers [maxShift - minShift + 1][][]byte

// class returns the place in the stock of buffers of at least n bytes.
func class(n int) int { return max(0, bits.Len(uint(n-1))-minShift) }

// take returns an empty buffer with room for n bytes.
func (b *buffers) take(n int) []byte {
	c := class(max(n, 1))
	if c >= len(b) {
		return make([]byte, 0, n)
	}
	stock := b[c]
	if last := len(stock) - 1; last >= 0 {
		buf := stock[last]
		b[c] = stock[:last]
		return buf
	}
	return make([]byte, 0, bufferSize<<c)
}

// give takes back a buffer whose bytes are no longer needed.
func (b *buffers) give(buf []byte) {
	n := cap(buf)
	c := class(max(n, 1))
	if n < bufferSize || c >= len(b) || n != bufferSize<<c || len(b[c]) >= stockBytes>>(minShift+c) {
		return
	}
	b[c] = append(b[c], buf[:0])
}

// TakeBuffer returns an empty buffer with room for n bytes, for who keeps bytes for a while.
func (l *Loop) TakeBuffer(n int) []byte { return l.buffers.take(n) }

// GiveBuffer takes back a buffer that is no longer needed; one that it cannot use it drops.
func (l *Loop) GiveBuffer(b []byte) { l.buffers.give(b) }
