package memproto

import (
	"bytes"
	"encoding/base64"
	"strconv"
)

// Item is what a reply tells of one item. Its slices point into the reply.
type Item struct {
	Flags []byte // in digits
	Value []byte
}

// ParseItem reads a whole reply with a value, classic or meta. It reports false for any
// other, for a meta reply that does not tell the flags, and for an item that was marked
// as stale, as a copy would not be.
func ParseItem(reply []byte) (it Item, ok bool) {
	end := bytes.IndexByte(reply, '\n')
	if end < 0 {
		return it, false
	}
	line := bytes.TrimSuffix(reply[:end], []byte{'\r'})
	verb, rest := NextWord(line)
	var size []byte
	switch string(verb) {
	case "VALUE":
		_, rest = NextWord(rest)
		it.Flags, rest = NextWord(rest)
		size, _ = NextWord(rest)
	case "VA":
		size, rest = NextWord(rest)
		if stale(rest) {
			return it, false
		}
		it.Flags = metaFlag(rest, 'f')
	}
	n, ok := ParseUint(size)
	if !ok || len(it.Flags) == 0 || n > uint64(len(reply)) || uint64(len(reply)-end-1) < n+2 {
		return it, false
	}
	it.Value = reply[end+1 : end+1+int(n)]
	return it, true
}

// metaFlag returns what stands behind a flag's letter, nil if it is not there.
func metaFlag(flags []byte, letter byte) []byte {
	for word, rest := NextWord(flags); len(word) > 0; word, rest = NextWord(rest) {
		if word[0] == letter {
			return word[1:]
		}
	}
	return nil
}

// stale reports whether the flags of a meta reply say that the item is to be renewed: X by
// whoever wins, W, or has won, Z.
func stale(flags []byte) bool {
	for word, rest := NextWord(flags); len(word) > 0; word, rest = NextWord(rest) {
		if len(word) == 1 && (word[0] == 'W' || word[0] == 'X' || word[0] == 'Z') {
			return true
		}
	}
	return false
}

// AppendAskTTL appends a request for the time that an item has left; [ParseTTL] reads
// the reply. The key is sent in base64 if it is coded.
func AppendAskTTL(dst, key []byte, coded bool) []byte {
	dst = append(appendKey(append(dst, "mg "...), key, coded), " t"...)
	if coded {
		dst = append(dst, " b"...)
	}
	return append(dst, "\r\n"...)
}

// appendKey appends a key, in base64 if it is to be coded.
func appendKey(dst, key []byte, coded bool) []byte {
	if coded {
		return base64.StdEncoding.AppendEncode(dst, key)
	}
	return append(dst, key...)
}

// AppendGet appends a read of an item with all that [ParseItem] wants, and returns its
// verb. The key is sent in base64 if it is coded.
func AppendGet(dst, key []byte, coded bool) ([]byte, Verb) {
	if coded {
		return append(appendKey(append(dst, "mg "...), key, true), " v f b\r\n"...), MetaGet
	}
	return append(append(append(dst, "get "...), key...), "\r\n"...), Get
}

// ParseTTL reads the reply to [AppendAskTTL]: the seconds that are left, or -1 if the item
// does not expire. It reports false when the item is not there or is stale, or the server
// is too old.
func ParseTTL(reply []byte) (seconds int64, ok bool) {
	verb, rest := NextWord(bytes.TrimSuffix(reply, []byte("\r\n")))
	if string(verb) != "HD" || stale(rest) {
		return 0, false
	}
	return ParseInt(metaFlag(rest, 't'))
}

// AppendAdd appends an add of an item that lives for some seconds, 0 for ever, and returns
// its verb. The key is sent in base64 if it is coded. A reply of STORED or HD says that it
// was stored.
func AppendAdd(dst, key []byte, coded bool, it Item, seconds int64) ([]byte, Verb) {
	verb := Add
	if coded {
		verb = MetaSet
		dst = append(appendKey(append(dst, "ms "...), key, true), ' ')
		dst = strconv.AppendInt(dst, int64(len(it.Value)), 10)
		dst = append(append(dst, " b ME F"...), it.Flags...)
		dst = strconv.AppendInt(append(dst, " T"...), seconds, 10)
	} else {
		dst = append(append(append(dst, "add "...), key...), ' ')
		dst = append(append(dst, it.Flags...), ' ')
		dst = append(strconv.AppendInt(dst, seconds, 10), ' ')
		dst = strconv.AppendInt(dst, int64(len(it.Value)), 10)
	}
	dst = append(append(dst, "\r\n"...), it.Value...)
	return append(dst, "\r\n"...), verb
}

// AppendDelete appends a deletion and returns its verb. The key is sent in base64 if it
// is coded.
func AppendDelete(dst, key []byte, coded bool) ([]byte, Verb) {
	if coded {
		return append(appendKey(append(dst, "md "...), key, true), " b\r\n"...), MetaDelete
	}
	return append(append(append(dst, "delete "...), key...), "\r\n"...), Delete
}

// Missed reports whether a whole reply to a read says that there is no such item.
func Missed(reply []byte) bool {
	return len(reply) > 1 && reply[0] == 'E' && reply[1] == 'N'
}

// IsFault reports whether a whole reply is an error.
func IsFault(reply []byte) bool {
	word, _ := NextWord(bytes.TrimSuffix(reply, []byte("\r\n")))
	return classify(word) == rFault
}

// Changed reports whether a request that is no read may have changed the item, going by
// the reply. Deleting what is not there counts as a change: copies of it may be.
func Changed(v Verb, reply []byte) bool {
	if len(reply) < 2 {
		return true
	}
	switch {
	case bytes.HasPrefix(reply, []byte("NOT_")), bytes.HasPrefix(reply, []byte("NF")), bytes.HasPrefix(reply, []byte("NS")):
		return v == Delete || v == MetaDelete
	case bytes.HasPrefix(reply, []byte("EX")), Missed(reply), bytes.HasPrefix(reply, []byte("CLIENT_ERROR")):
		return false
	}
	return true
}

// Absent reports whether a request that is no read found no item to act upon, going by
// the reply: it might find one after the item was brought from elsewhere.
func Absent(v Verb, reply []byte) bool {
	switch v {
	case Set, Add, Delete, MetaDelete:
		return false
	case MetaSet: // NS also says of an add that the item is there, which is then found again
		return bytes.HasPrefix(reply, []byte("NF")) || bytes.HasPrefix(reply, []byte("NS"))
	case Replace, Append, Prepend:
		return bytes.HasPrefix(reply, []byte("NOT_STORED"))
	}
	return Missed(reply) || bytes.HasPrefix(reply, []byte("NOT_FOUND")) || bytes.HasPrefix(reply, []byte("NF"))
}

// AppendStore appends a request that stores unconditionally what a whole request of a verb
// stores if its condition holds, for at most limit seconds. It reports false, and appends
// nothing, for a request that does not tell the item whole. Unix is the time in seconds.
func AppendStore(dst []byte, v Verb, raw []byte, limit, unix int64) ([]byte, bool) {
	switch v {
	case Set:
		return CapExpiry(dst, v, raw, limit, unix), true
	case MetaSet:
		return appendMetaStore(dst, raw, limit, unix)
	case Add, Replace, Cas:
	default:
		return dst, false
	}
	end := bytes.IndexByte(raw, '\n') + 1
	var words wordList
	words.split(bytes.TrimRight(raw[:end], "\r\n"))
	exptime, _ := ParseInt(words.w[3])
	dst = append(append(append(dst, "set "...), words.w[1]...), ' ')
	dst = append(append(dst, words.w[2]...), ' ')
	dst = strconv.AppendInt(dst, capped(exptime, limit, unix), 10)
	dst = append(append(append(dst, ' '), words.w[4]...), "\r\n"...)
	return append(dst, raw[end:]...), true
}

var storeFlags = letters("FTbOkcsS") // say nothing but what is stored

// appendMetaStore passes on an ms that is a plain set.
func appendMetaStore(dst, raw []byte, limit, unix int64) ([]byte, bool) {
	end := bytes.IndexByte(raw, '\n')
	_, rest := NextWord(bytes.TrimSuffix(raw[:end], []byte{'\r'}))
	_, rest = NextWord(rest)
	_, rest = NextWord(rest)
	for word, rest := NextWord(rest); len(word) > 0; word, rest = NextWord(rest) {
		if letterBit(word[0])&storeFlags == 0 {
			return dst, false
		}
	}
	return CapExpiry(dst, MetaSet, raw, limit, unix), true
}
