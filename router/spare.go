package router

// Buffers of requests that are over. Small ones stay with what has used them; large ones are
// the loop's, which lends them to whoever has much to keep: made anew for each request, they
// would have the garbage collector at work all the time.

// keepReply is the capacity above which a request does not keep its buffer, in bytes.
const keepReply = 16 << 10

// spare returns a buffer emptied, or nil if it is too large to keep.
func spare(b []byte) []byte {
	if cap(b) > keepReply {
		return nil
	}
	return b[:0]
}

// room returns a buffer with room for n more bytes. What is large comes from the loop, and goes
// back there with spare.
func (f *front) room(b []byte, n int) []byte {
	n += len(b)
	if n <= max(cap(b), keepReply) {
		return b
	}
	large := append(f.loop.TakeBuffer(max(n, 2*cap(b))), b...)
	f.loop.GiveBuffer(b)
	return large
}

// spare is spare for a buffer of room.
func (f *front) spare(b []byte) []byte {
	if cap(b) > keepReply {
		f.loop.GiveBuffer(b)
	}
	return spare(b)
}
