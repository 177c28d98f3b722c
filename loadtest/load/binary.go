//go:build linux

package load

import (
	"encoding/binary"
)

// Of the binary protocol, as in memcached's protocol_binary.h.
const (
	binaryRequest = 0x80
	binaryReply   = 0x81
	binaryGet     = 0x00
	binarySet     = 0x01
	binaryGetQ    = 0x09 // says nothing of a miss
	binaryHeader  = 24
	binaryFlags   = 4 // extras of a hit
	binaryOK      = 0
	binaryMissing = 1
)

// packets is the binary protocol. A request's opaque is the number of its key, so that a reply to
// another request is seen even if it is a miss.
type packets struct{ *keyspace }

func (d packets) appendGet(dst []byte, calls []call) []byte {
	for _, q := range calls {
		dst = d.appendHeader(dst, q, 0, 0)
		dst = append(dst, d.key(q.key)...)
	}
	return dst
}

func (d packets) appendSet(dst []byte, q call) []byte {
	const extras = 8 // flags and expiry
	dst = d.appendHeader(dst, q, extras, d.sizeOf(q.key))
	dst = binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 0), q.ttl)
	dst = append(dst, d.key(q.key)...)
	return d.appendValue(dst, q.key, q.version)
}

// appendHeader appends the header of a request with so many bytes of extras and of value.
func (d packets) appendHeader(dst []byte, q call, extras byte, value int) []byte {
	key := len(d.key(q.key))
	dst = append(dst, binaryRequest, opcodeOf(q), 0, byte(key), extras, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(int(extras)+key+value))
	dst = binary.BigEndian.AppendUint32(dst, q.key)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

func (d packets) scan(buf []byte, q call) (r reply, taken, want int, err error) {
	if buf[0] != binaryReply {
		return r, 0, 0, strange(buf)
	}
	if len(buf) < binaryHeader {
		return r, 0, binaryHeader, nil
	}
	body := int(binary.BigEndian.Uint32(buf[8:]))
	if body > maxValue+longestLine {
		return r, 0, 0, strange(buf[:binaryHeader])
	}
	whole := binaryHeader + body
	if q.more && (buf[1] != binaryGetQ || binary.BigEndian.Uint32(buf[12:]) != q.key) {
		return reply{kind: replyMiss}, 0, 0, nil
	}
	if len(buf) < whole {
		return r, 0, whole, nil
	}
	return readPacket(buf[:whole], q), whole, 0, nil
}

// readPacket judges a whole packet p by its header.
func readPacket(p []byte, q call) reply {
	r := reply{kind: replyOther, line: p[:binaryHeader]}
	opcode, status := p[1], binary.BigEndian.Uint16(p[6:])
	keys, extras := binary.BigEndian.Uint16(p[2:]), p[4]
	if opcode != opcodeOf(q) || binary.BigEndian.Uint32(p[12:]) != q.key || keys != 0 {
		return r
	}
	switch {
	case status == binaryMissing && q.op == opGet:
		r.kind = replyMiss
	case status != binaryOK:
		r.kind = replyRefused
		if len(p) > binaryHeader {
			r.line = p[binaryHeader:]
		}
	case q.op == opSet && len(p) == binaryHeader:
		r.kind = replyStored
	case q.op == opGet && extras == binaryFlags && len(p) >= binaryHeader+binaryFlags:
		r.kind, r.data = replyHit, p[binaryHeader+binaryFlags:]
	}
	return r
}

func opcodeOf(q call) byte {
	switch {
	case q.op == opSet:
		return binarySet
	case q.more:
		return binaryGetQ
	}
	return binaryGet
}
