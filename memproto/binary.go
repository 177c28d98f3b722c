package memproto

import (
	"encoding/base64"
	"encoding/binary"
)

// BinaryMagic is the first byte of every binary request. No text command begins with it.
const BinaryMagic = 0x80

const (
	replyMagic   = 0x81
	binaryHeader = 24 // bytes
)

// Code is the outcome of a binary request, as its answer tells it.
type Code uint16

// The codes.
const (
	CodeOK             Code = 0x00
	CodeNotFound       Code = 0x01
	CodeExists         Code = 0x02
	CodeTooLarge       Code = 0x03
	CodeInvalid        Code = 0x04
	CodeNotStored      Code = 0x05
	CodeNotNumeric     Code = 0x06
	CodeAuth           Code = 0x20
	CodeUnknownCommand Code = 0x81
	CodeOutOfMemory    Code = 0x82
	CodeInternal       Code = 0x84
	CodeTemporary      Code = 0x86
)

// text returns what memcached says with a code.
func (c Code) text() string {
	switch c {
	case CodeNotFound:
		return "Not found"
	case CodeExists:
		return "Data exists for key."
	case CodeTooLarge:
		return "Too large."
	case CodeInvalid:
		return "Invalid arguments"
	case CodeNotStored:
		return "Not stored."
	case CodeNotNumeric:
		return "Non-numeric server-side value for incr or decr"
	case CodeAuth:
		return "Auth failure."
	case CodeUnknownCommand:
		return "Unknown command"
	}
	return "Internal error"
}

// BinaryRequest is one request of a client that speaks the binary protocol. Its slices
// point into the buffer given to [Parser.ParseBinary] and are valid until that changes.
type BinaryRequest struct {
	Op     Opcode
	Opaque uint32 // comes back with the answer
	CAS    uint64 // 0 means any
	Extras []byte
	Key    []byte
	Value  []byte
	// Base64 is set when the text protocol can spell Key in base64 only.
	Base64 bool

	// Refusal is the code that answers a refused request.
	Refusal Code
	// Close is set on a refused request after whose answer the connection ends.
	Close bool
	// Skip counts the bytes behind the refused frame's key that belong to it and must be
	// dropped before Refusal is said.
	Skip int
	// Drops is set on a refused store that must drop the item's old value all the same.
	Drops bool
	// Need is set on Incomplete: the bytes, from the start of the buffer, without which
	// it makes no sense to ask again.
	Need int
}

// ParseBinary reads the binary request at the start of b into r and returns how many
// bytes it has taken, 0 if it is not whole yet. It allocates nothing and keeps no state.
//
// Where memcached 1.6.18 loses step with its client, a frame is as long as its header
// says: an unknown opcode with a key is skipped and answered, and an expiry and key with
// something behind them are refused, as such a key alone is.
func (p *Parser) ParseBinary(b []byte, r *BinaryRequest) (int, Status) {
	*r = BinaryRequest{Need: binaryHeader}
	if len(b) < binaryHeader {
		return 0, Incomplete
	}
	if b[0] != BinaryMagic {
		return 0, Hangup
	}
	extras, key := int(b[4]), int(binary.BigEndian.Uint16(b[2:]))
	r.Need = binaryHeader + extras + key
	if len(b) < r.Need {
		return 0, Incomplete
	}
	r.Op = Opcode(b[1])
	r.Opaque = binary.BigEndian.Uint32(b[12:])
	r.CAS = binary.BigEndian.Uint64(b[16:])
	r.Extras = b[binaryHeader : binaryHeader+extras]
	r.Key = b[binaryHeader+extras : r.Need]
	value := int64(binary.BigEndian.Uint32(b[8:])) - int64(extras+key)
	if p.judge(r, value); r.Refusal != CodeOK {
		return r.Need, Refused
	}
	head := r.Need
	r.Need += int(value)
	if len(b) < r.Need {
		return 0, Incomplete
	}
	r.Value = b[head:r.Need]
	return r.Need, Complete
}

// judge refuses what memcached refuses, with the same codes.
func (p *Parser) judge(r *BinaryRequest, value int64) {
	f := opcodes[r.Op].frame
	switch {
	case value < 0:
		r.refuse(CodeUnknownCommand, true)
	case len(r.Key) > MaxKey:
		r.refuse(CodeInvalid, true)
	case f == frameUnknown:
		r.refuse(CodeUnknownCommand, value > maxInt32Value)
	case !f.fits(len(r.Extras), len(r.Key), value):
		r.refuse(CodeInvalid, true)
	case value > maxInt32Value: // nobody waits for the end of that
		r.refuse(CodeTooLarge, true)
	case p.MaxValue > 0 && value > int64(p.MaxValue):
		r.spell()
		r.Drops = r.Refusal == CodeOK && r.Op.Verb() == Set
		r.refuse(CodeTooLarge, false)
	default:
		r.spell()
	}
	if r.Refusal != CodeOK && !r.Close {
		r.Skip = int(value)
	}
}

func (r *BinaryRequest) refuse(c Code, hangUp bool) { r.Refusal, r.Close = c, hangUp }

// spell finds out how the text protocol names the key. It has no name for a key of which
// the base64 form is longer than MaxKey.
func (r *BinaryRequest) spell() {
	r.Base64 = !plain(r.Key)
	if r.Base64 && base64.StdEncoding.EncodedLen(len(r.Key)) > MaxKey {
		r.refuse(CodeInvalid, false)
	}
}

// plain reports whether a key can stand in a line as it is.
func plain(key []byte) bool {
	for _, c := range key {
		if c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == 0) {
			return false
		}
	}
	return true
}
