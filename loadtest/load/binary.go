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
	binaryHeader  = 24
	binaryFlags   = 4 // extras of a hit
	binaryOK      = 0
	binaryMissing = 1
)

// packets is the binary protocol. A request's opaque is the number of its key, so that a reply to
// another request is seen even if it is a miss.
type packets struct {
	*keyspace
}

func newBinary(k *keyspace) packets { return packets{k} }

func (d packets) appendGet(dst []byte, i uint32) []byte {
	dst = appendHeader(dst, binaryGet, 0, keyLen, i)
	return append(dst, d.key(i)...)
}

func (d packets) appendSet(dst []byte, i uint32) []byte {
	const extras = 8 // flags and expiry, both 0
	dst = appendHeader(dst, binarySet, extras, extras+keyLen+d.size, i)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = append(dst, d.key(i)...)
	return d.appendValue(dst, i)
}

// appendHeader appends the header of a request with a key, the given extras and body.
func appendHeader(dst []byte, opcode, extras byte, body int, opaque uint32) []byte {
	dst = append(dst, binaryRequest, opcode, 0, keyLen, extras, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(body))
	dst = binary.BigEndian.AppendUint32(dst, opaque)
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
	if opcode != opcodeOf(q.op) || binary.BigEndian.Uint32(p[12:]) != q.key || keys != 0 {
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

func opcodeOf(o op) byte {
	if o == opSet {
		return binarySet
	}
	return binaryGet
}
