package memproto

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// BinaryCall is what must be remembered of a binary request to answer it. Its zero value
// may be remembered into, and used again.
type BinaryCall struct {
	op     Opcode
	opaque uint32
	key    []byte // if the answer tells it
}

// Verb returns the verb that does what was asked.
func (c *BinaryCall) Verb() Verb { return c.op.Verb() }

// Remember keeps of r what its answer needs. The request may change afterwards.
func (c *BinaryCall) Remember(r *BinaryRequest) {
	c.op, c.opaque, c.key = r.Op, r.Opaque, c.key[:0]
	if opcodes[r.Op].tellsKey {
		c.key = append(c.key, r.Key...)
	}
}

// Say appends an answer with a code and a text; an empty text stands for the code's own.
func (c *BinaryCall) Say(dst []byte, code Code, text string) []byte {
	if text == "" && code != CodeOK {
		text = code.text()
	}
	dst = c.header(dst, code, 0, 0, len(text), 0)
	return append(dst, text...)
}

// Answer translates a backend's whole reply to what [BinaryRequest.Forward] made, as
// [NextUnit] has framed it, or a reply to flush_all or stats. The answer is head, which is dst grown, and then value,
// which is a part of reply. Both are empty when the client wants silence.
func (c *BinaryCall) Answer(dst, reply []byte) (head, value []byte) {
	line, block, _ := bytes.Cut(reply, []byte("\r\n"))
	word, args := NextWord(line)
	if isFault(word) {
		return c.fault(dst, string(word), args), nil
	}
	if c.op == OpStat {
		return c.stats(dst, reply), nil
	}
	switch string(word) {
	case "VALUE":
		return c.classicValue(dst, args, block)
	case "VA":
		length, args := NextWord(args)
		return c.value(dst, block[:replyLength(length, 0)], readFlags(args))
	case "HD":
		return c.done(dst, readFlags(args)), nil
	case "OK":
		return c.done(dst, metaFlags{}), nil
	case "END", "EN", "NF":
		return c.miss(dst), nil
	case "EX":
		return c.Say(dst, CodeExists, ""), nil
	case "NS":
		return c.notStored(dst), nil
	}
	return c.Say(dst, CodeInternal, ""), nil
}

func isFault(word []byte) bool {
	switch string(word) {
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return true
	}
	return false
}

// classicValue tells the value of a gets or gats. The key in it has been compared.
func (c *BinaryCall) classicValue(dst, args, block []byte) (head, value []byte) {
	_, args = NextWord(args)
	flags, args := NextWord(args)
	length, args := NextWord(args)
	cas, _ := NextWord(args)
	f := metaFlags{flags: uint32(number(flags)), cas: number(cas)}
	return c.value(dst, block[:replyLength(length, 0)], f)
}

// value tells a value, or the new value of a counter.
func (c *BinaryCall) value(dst, value []byte, f metaFlags) (head, tail []byte) {
	switch c.op.Verb() {
	case Incr, Decr:
		if c.op.Quiet() {
			return dst, nil
		}
		dst = c.header(dst, CodeOK, 0, 0, 8, f.cas)
		return binary.BigEndian.AppendUint64(dst, number(value)), nil
	}
	dst = c.header(dst, CodeOK, 4, len(c.key), len(value), f.cas)
	dst = binary.BigEndian.AppendUint32(dst, f.flags)
	return append(dst, c.key...), value
}

// done tells a success.
func (c *BinaryCall) done(dst []byte, f metaFlags) []byte {
	switch {
	case c.op.Quiet():
		return dst
	case c.op == OpTouch:
		dst = c.header(dst, CodeOK, 4, 0, 0, f.cas)
		return binary.BigEndian.AppendUint32(dst, f.flags)
	}
	return c.header(dst, CodeOK, 0, 0, 0, f.cas)
}

func (c *BinaryCall) miss(dst []byte) []byte {
	switch v := c.op.Verb(); {
	case c.op.Quiet() && (v == Get || v == Gat):
		return dst
	case opcodes[c.op].tellsKey:
		return append(c.header(dst, CodeNotFound, 0, len(c.key), 0, 0), c.key...)
	}
	return c.Say(dst, CodeNotFound, "")
}

func (c *BinaryCall) notStored(dst []byte) []byte {
	switch c.op.Verb() {
	case Add:
		return c.Say(dst, CodeExists, "")
	case Replace:
		return c.Say(dst, CodeNotFound, "")
	}
	return c.Say(dst, CodeNotStored, "")
}

// fault tells an error line, in memcached's words where it has a code for it. The rest of
// a server's errors are told as temporary, the router's own among them: the client may
// try again, and its connection is in step.
func (c *BinaryCall) fault(dst []byte, word string, args []byte) []byte {
	text := string(bytes.TrimPrefix(args, []byte(" ")))
	switch {
	case word == "ERROR":
		return c.Say(dst, CodeUnknownCommand, "")
	case text == "cannot increment or decrement non-numeric value":
		return c.Say(dst, CodeNotNumeric, "")
	case word == "CLIENT_ERROR" && text == "flush_all not allowed":
		return c.Say(dst, CodeAuth, "")
	case word == "CLIENT_ERROR":
		return c.Say(dst, CodeInvalid, "")
	case text == "object too large for cache":
		return c.Say(dst, CodeTooLarge, "")
	case strings.HasPrefix(strings.ToLower(text), "out of memory"):
		return c.Say(dst, CodeOutOfMemory, text)
	}
	return c.Say(dst, CodeTemporary, text)
}

// stats tells each STAT line in an answer of its own, and their end in an empty one.
func (c *BinaryCall) stats(dst, reply []byte) []byte {
	for line := range bytes.Lines(reply) {
		word, args := NextWord(bytes.TrimRight(line, "\r\n"))
		if string(word) != "STAT" {
			continue
		}
		name, value := NextWord(args)
		value = bytes.TrimPrefix(value, []byte(" "))
		dst = c.header(dst, CodeOK, 0, len(name), len(value), 0)
		dst = append(append(dst, name...), value...)
	}
	return c.header(dst, CodeOK, 0, 0, 0, 0)
}

// header appends the header of an answer with parts of the given sizes.
func (c *BinaryCall) header(dst []byte, code Code, extras, key, value int, cas uint64) []byte {
	dst = append(dst, replyMagic, byte(c.op), byte(key>>8), byte(key), byte(extras), 0, byte(code>>8), byte(code))
	dst = binary.BigEndian.AppendUint32(dst, uint32(extras+key+value))
	dst = binary.BigEndian.AppendUint32(dst, c.opaque)
	return binary.BigEndian.AppendUint64(dst, cas)
}

// metaFlags are the numbers in a meta reply.
type metaFlags struct {
	flags uint32
	cas   uint64
}

func readFlags(args []byte) (f metaFlags) {
	for word, rest := NextWord(args); len(word) > 0; word, rest = NextWord(rest) {
		switch word[0] {
		case 'f':
			f.flags = uint32(number(word[1:]))
		case 'c':
			f.cas = number(word[1:])
		}
	}
	return f
}

// number reads a number of a backend, 0 if it is none.
func number(word []byte) (n uint64) {
	for _, d := range word {
		if d-'0' > 9 {
			return 0
		}
		n = n*10 + uint64(d-'0')
	}
	return n
}
