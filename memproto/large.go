package memproto

import (
	"bytes"
	"encoding/hex"
	"strconv"
)

// A large value may be stored in parts, and a head in its place that says which. The head's
// flags tell it from other items: nothing that a client does to an item changes them, so who
// sees to it that no client stores with these flags knows a head by them. Its value is one
// record of a fixed length, and what clients have put before it and behind it since.

// HeadFlags are the flags of a head.
const HeadFlags uint32 = 0xd3a91c57

const (
	headFlagsText = "3551075415" // HeadFlags in digits
	headMagic     = "cacherouter parts 1 "

	// PartPrefix begins the keys of parts.
	PartPrefix = "cacherouter:part:"
)

// Head says of what parts a value is made.
type Head struct {
	ID     [16]byte // of this value alone
	Size   uint32   // of each part but the last, in bytes
	Length uint32   // of the value, in bytes
	Flags  uint32   // the client's
	Sum    uint64   // a hash of the value
}

// HeadLen is the length of a head's record, in bytes.
const HeadLen = len(headMagic) + 2*(16+4+4+4+8) + 5

// Parts returns how many parts there are.
func (h *Head) Parts() int { return int((uint64(h.Length) + uint64(h.Size) - 1) / uint64(h.Size)) }

// Part returns where a part stands in the value.
func (h *Head) Part(i int) (from, to int) {
	from = i * int(h.Size)
	return from, min(from+int(h.Size), int(h.Length))
}

// AppendKey appends the key of a part.
func (h *Head) AppendKey(dst []byte, i int) []byte {
	dst = hex.AppendEncode(append(dst, PartPrefix...), h.ID[:])
	return strconv.AppendInt(append(dst, ':'), int64(i), 10)
}

// Append appends the head's record.
func (h *Head) Append(dst []byte) []byte {
	dst = hex.AppendEncode(append(dst, headMagic...), h.ID[:])
	for _, n := range [...]uint32{h.Size, h.Length, h.Flags, uint32(h.Sum >> 32)} {
		dst = appendHex(append(dst, ' '), n)
	}
	return append(appendHex(dst, uint32(h.Sum)), '\n')
}

func appendHex(dst []byte, n uint32) []byte {
	return hex.AppendEncode(dst, []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// ParseHead reads the value of an item with HeadFlags, and returns what stands before and
// behind the head's record.
func ParseHead(value []byte) (h Head, before, behind []byte, ok bool) {
	for from := 0; ; from++ {
		n := bytes.Index(value[from:], []byte(headMagic))
		if n < 0 {
			return h, nil, nil, false
		}
		if from += n; h.parse(value[from:]) {
			return h, value[:from], value[from+HeadLen:], true
		}
	}
}

// parse reads a record at the start of b.
func (h *Head) parse(b []byte) bool {
	if len(b) < HeadLen {
		return false
	}
	b = b[len(headMagic):HeadLen]
	if _, err := hex.Decode(h.ID[:], b[:32]); err != nil || b[len(b)-1] != '\n' {
		return false
	}
	var n [4]uint32
	for i := range n[:3] {
		at := b[32+9*i:]
		v, err := strconv.ParseUint(string(at[1:9]), 16, 32)
		if err != nil || at[0] != ' ' {
			return false
		}
		n[i] = uint32(v)
	}
	sum, err := strconv.ParseUint(string(b[32+28:32+28+16]), 16, 64)
	h.Size, h.Length, h.Flags, h.Sum = n[0], n[1], n[2], sum
	return err == nil && b[32+27] == ' ' && h.Size > 0
}

// TellsHead reports whether a whole reply tells of an item that is a head. That of a meta get
// must tell the flags.
func TellsHead(reply []byte) bool {
	if len(reply) < 4 || reply[0] != 'V' && (reply[0] != 'H' || reply[1] != 'D') {
		return false
	}
	line, _ := lineOf(reply)
	verb, rest := NextWord(line)
	if string(verb) != "VALUE" {
		return string(metaFlag(rest, 'f')) == headFlagsText
	}
	_, rest = NextWord(rest)
	flags, _ := NextWord(rest)
	return string(flags) == headFlagsText
}

// TellsFlags reports whether a whole reply tells an item's flags.
func TellsFlags(reply []byte) bool {
	line, _ := lineOf(reply)
	verb, rest := NextWord(line)
	return string(verb) == "VALUE" || len(metaFlag(rest, 'f')) > 0
}

// AppendReplyOf appends a whole reply to a retrieval of one key, or to an ms, with other flags,
// another length and another value in the places where it tells them.
func AppendReplyOf(dst, reply []byte, flags uint32, length int64, value []byte) []byte {
	line, rest := lineOf(reply)
	verb, args := NextWord(line)
	dst = append(dst, verb...)
	var size []byte
	switch string(verb) {
	case "VALUE":
		key, args := NextWord(args)
		_, args = NextWord(args)
		size, args = NextWord(args)
		dst = append(append(append(dst, ' '), key...), ' ')
		dst = append(strconv.AppendUint(dst, uint64(flags), 10), ' ')
		dst = append(strconv.AppendInt(dst, length, 10), args...)
	case "VA":
		size, args = NextWord(args)
		dst = strconv.AppendInt(append(dst, ' '), length, 10)
		dst = appendFlagsOf(dst, args, flags, length)
	default: // HD
		return append(appendFlagsOf(dst, args, flags, length), rest...)
	}
	n, _ := ParseUint(size)
	behind := rest[min(uint64(len(rest)), 2+n):]
	return append(append(append(dst, "\r\n"...), value...), behind...)
}

// appendFlagsOf appends the flags of a meta reply with other client flags and another length.
func appendFlagsOf(dst, args []byte, flags uint32, length int64) []byte {
	for word, rest := NextWord(args); len(word) > 0; word, rest = NextWord(rest) {
		switch word[0] {
		case 'f':
			dst = strconv.AppendUint(append(dst, " f"...), uint64(flags), 10)
		case 's':
			dst = strconv.AppendInt(append(dst, " s"...), length, 10)
		default:
			dst = append(append(dst, ' '), word...)
		}
	}
	return dst
}

// HidesFlags reports whether the request is a meta get of a value, or its size, that does not
// ask for the flags: from its reply a head could not be told.
func (r *Request) HidesFlags() bool {
	return r.Verb == MetaGet && r.flags&(letterBit('v')|letterBit('s')) != 0 && r.flags&letterBit('f') == 0
}

// WantsOnlyAbout reports whether the request is a meta get of an item's flags or size, and not
// of its value.
func (r *Request) WantsOnlyAbout() bool {
	return r.Verb == MetaGet && r.flags&letterBit('v') == 0 && r.flags&(letterBit('f')|letterBit('s')) != 0
}

// AppendAskFlags appends a whole meta request that asks for the flags, too.
func AppendAskFlags(dst, raw []byte) []byte {
	line, behind := lineOf(raw)
	return append(append(append(dst, bytes.TrimRight(line, " ")...), " f"...), behind...)
}

// AppendAskFlagsOf appends a meta get of an item's flags alone. The key is sent in base64 if it
// is coded.
func AppendAskFlagsOf(dst, key []byte, coded bool) []byte {
	dst = append(appendKey(append(dst, "mg "...), key, coded), " f"...)
	if coded {
		dst = append(dst, " b"...)
	}
	return append(dst, "\r\n"...)
}

// AppendWithoutFlags appends a whole reply to such a request as it would be had it not asked.
func AppendWithoutFlags(dst, reply []byte) []byte {
	line, behind := lineOf(reply)
	word, args := NextWord(line)
	if string(word) != "VA" && string(word) != "HD" {
		return append(dst, reply...)
	}
	dst = append(dst, word...)
	for word, rest := NextWord(args); len(word) > 0; word, rest = NextWord(rest) {
		if word[0] != 'f' {
			dst = append(append(dst, ' '), word...)
		}
	}
	return append(dst, behind...)
}

// Store is what a request stores.
type Store struct {
	Flags   uint32
	Exptime []byte // as the request has it
	Value   []byte
}

// ParseStore reads a whole request of a verb that stores a value whole. It reports false for
// others, such as those that append to one. Of flags it takes the lower 32 bits, as memcached
// does.
func ParseStore(v Verb, raw []byte) (s Store, ok bool) {
	line, rest := lineOf(raw)
	if len(rest) < 4 {
		return s, false
	}
	s.Value = rest[2 : len(rest)-2]
	var flags []byte
	switch v {
	case Set, Add, Replace, Cas:
		var words wordList
		words.split(line)
		flags, s.Exptime = words.w[2], words.w[3]
	case MetaSet:
		args := storeArgs(line)
		if mode := metaFlag(args, 'M'); len(mode) > 0 && bytes.IndexByte([]byte("aApP"), mode[0]) >= 0 {
			return s, false
		}
		flags, s.Exptime = metaFlag(args, 'F'), metaFlag(args, 'T')
		if len(flags) == 0 {
			flags = zero
		}
		if len(s.Exptime) == 0 {
			s.Exptime = zero
		}
	default:
		return s, false
	}
	n, ok := ParseUint(flags)
	s.Flags = uint32(n)
	return s, ok
}

var zero = []byte("0")

// storeArgs returns what stands behind the length of an ms.
func storeArgs(line []byte) []byte {
	_, rest := NextWord(line)
	_, rest = NextWord(rest)
	_, rest = NextWord(rest)
	return rest
}

// AppendStoreOf appends a request that [ParseStore] can read with other flags and another
// value.
func AppendStoreOf(dst []byte, v Verb, raw []byte, flags uint32, value []byte) []byte {
	line, _ := lineOf(raw)
	if v == MetaSet {
		args := storeArgs(line)
		_, rest := NextWord(line)
		key, _ := NextWord(rest)
		dst = append(append(append(dst, "ms "...), key...), ' ')
		dst = strconv.AppendInt(dst, int64(len(value)), 10)
		for word, rest := NextWord(args); len(word) > 0; word, rest = NextWord(rest) {
			if word[0] != 'F' {
				dst = append(append(dst, ' '), word...)
			}
		}
		dst = strconv.AppendUint(append(dst, " F"...), uint64(flags), 10)
	} else {
		var words wordList
		words.split(line)
		dst = append(append(append(dst, words.w[0]...), ' '), words.w[1]...)
		dst = append(strconv.AppendUint(append(dst, ' '), uint64(flags), 10), ' ')
		dst = append(append(dst, words.w[3]...), ' ')
		dst = strconv.AppendInt(dst, int64(len(value)), 10)
		if v == Cas {
			dst = append(append(dst, ' '), words.w[5]...)
		}
	}
	return append(append(append(dst, "\r\n"...), value...), "\r\n"...)
}

// AppendSet appends a set without flags.
func AppendSet(dst, key, exptime, value []byte) []byte {
	dst = append(append(append(dst, "set "...), key...), " 0 "...)
	dst = append(append(dst, exptime...), ' ')
	dst = append(strconv.AppendInt(dst, int64(len(value)), 10), "\r\n"...)
	return append(append(dst, value...), "\r\n"...)
}

// UsesHeadFlags reports whether a whole ms of any mode names HeadFlags.
func UsesHeadFlags(raw []byte) bool {
	line, _ := lineOf(raw)
	n, ok := ParseUint(metaFlag(storeArgs(line), 'F'))
	return ok && uint32(n) == HeadFlags
}

// Touches returns the exptime that a whole request of a verb gives an item that it does not
// store, in the request's words; empty if it gives none.
func Touches(v Verb, raw []byte) []byte {
	line, _ := lineOf(raw)
	word, rest := NextWord(line)
	switch v {
	case Touch, Gat, Gats:
		for range expiryWord(v) {
			word, rest = NextWord(rest)
		}
		return word
	case MetaGet:
		return metaFlag(rest, 'T')
	}
	return nil
}
