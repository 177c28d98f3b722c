package memproto

import (
	"bytes"
	"encoding/base64"
)

// A router may know a key by another name than its client. The request is then put about
// the servers' key before it is sent, and the reply about the client's before it is shown.

// AppendRenamed appends the whole request as it would have come about another key, which is
// spelled as this one's is. It must have one key.
func (r *Request) AppendRenamed(dst, key []byte) []byte {
	_, behind := NextWord(r.Line)
	if r.Verb == Gat || r.Verb == Gats { // the exptime comes first
		_, behind = NextWord(behind)
	}
	_, behind = NextWord(behind)
	before := bytes.TrimRight(r.Line[:len(r.Line)-len(behind)], " ")
	dst = append(dst, before[:len(before)-len(r.Key)]...)
	dst = appendSpelled(dst, key, r.Base64)
	return append(append(append(dst, behind...), "\r\n"...), r.Data...)
}

func appendSpelled(dst, key []byte, coded bool) []byte {
	if coded {
		return base64.StdEncoding.AppendEncode(dst, key)
	}
	return append(dst, key...)
}

// Rename puts a binary request about another key.
func (r *BinaryRequest) Rename(key []byte) {
	r.Key = key
	r.spell()
}

// AppendReplyAbout appends a server's whole reply to a request on one key with another key
// in the places where it names one: in VALUE and ME, and behind the meta flag k.
func AppendReplyAbout(dst, reply, key []byte) []byte {
	line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	word, args := NextWord(line)
	switch string(word) {
	case "VALUE", "ME":
		_, args = NextWord(args)
		dst = append(append(append(append(dst, word...), ' '), key...), args...)
	case "VA", "HD", "EN", "NF", "NS", "EX":
		dst = appendFlagsAbout(dst, line, key)
	default:
		return append(dst, reply...)
	}
	return append(append(dst, "\r\n"...), rest...)
}

// appendFlagsAbout appends the line of a meta reply with another key behind the flag k.
func appendFlagsAbout(dst, line, key []byte) []byte {
	coded := false
	for word, rest := NextWord(line); len(word) > 0; word, rest = NextWord(rest) {
		coded = coded || string(word) == "b"
	}
	word, rest := NextWord(line)
	dst = append(dst, word...)
	for word, rest = NextWord(rest); len(word) > 0; word, rest = NextWord(rest) {
		dst = append(dst, ' ')
		if word[0] == 'k' {
			dst = appendSpelled(append(dst, 'k'), key, coded)
		} else {
			dst = append(dst, word...)
		}
	}
	return dst
}
