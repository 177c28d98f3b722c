package memproto

import "bytes"

// maxMetaWords is the number of words from which memcached refuses a meta line.
const maxMetaWords = 20

// parseMeta reads the line of an mg, md, ma or me. What is wrong with its flags is for
// the backend to say; only q, b and the flags that make a read a write matter here.
func (r *Request) parseMeta(words *wordList) Status {
	if words.n == 1 { // me alone
		return r.refuse(LineBadFormat)
	}
	if status := r.withKey(words.w[1]); status != Complete {
		return status
	}
	if words.n >= maxMetaWords && r.Verb != MetaDebug { // me takes any number of words
		if r.Verb == MetaGet {
			return r.refuse(LineTooManyFlags)
		}
		return r.refuse("CLIENT_ERROR options flags too long")
	}
	_, rest := NextWord(r.Line)
	_, flags := NextWord(rest)
	if refusal := r.parseFlags(flags); refusal != "" {
		return r.refuse(refusal)
	}
	return Complete
}

// parseFlags reads the flags that the router must know. It returns a refusal for a
// second q, as one would stay in the line and silence the backend.
func (r *Request) parseFlags(flags []byte) string {
	for {
		word, rest := NextWord(flags)
		if len(word) == 0 {
			return ""
		}
		r.flags |= letterBit(word[0])
		switch word[0] {
		case 'q':
			if r.Verb == MetaDebug {
				break // me knows no flags but b
			}
			if r.NoReply {
				return duplicateFlag(r.Verb)
			}
			r.NoReply = true
			r.cutTo = len(r.Line) - len(rest)
			r.cutFrom = r.cutTo - len(word)
		case 'b':
			r.Base64 = true
		case 'N', 'R':
			r.Vivify = true
		}
		flags = rest
	}
}

// letterBit returns the bit of a flag's letter; bit 63 stands for what is no letter.
func letterBit(c byte) uint64 {
	switch {
	case c-'a' < 26:
		return 1 << (c - 'a')
	case c-'A' < 26:
		return 1 << (26 + c - 'A')
	}
	return 1 << 63
}

// letters returns the bits of several letters.
func letters(s string) (bits uint64) {
	for i := range len(s) {
		bits |= letterBit(s[i])
	}
	return bits
}

var (
	itemFlags  = letters("vf")          // tell all that a copy needs
	copyFlags  = letters("vfkOqsb")     // tell nothing that a copy does not have
	plainFlags = letters("vfkOqsbtchl") // change nothing
)

// duplicateFlag is what memcached says of a flag that is there twice.
func duplicateFlag(v Verb) string {
	if v == MetaDelete || v == MetaArithmetic {
		return "CLIENT_ERROR invalid or duplicate flag"
	}
	return "CLIENT_ERROR duplicate flag"
}

// Quiet reports whether a reply to a meta request with the flag q is kept from the
// client: the nominal ones are, errors and surprises are not.
func Quiet(v Verb, reply []byte) bool {
	switch v {
	case MetaGet:
		return bytes.HasPrefix(reply, []byte("EN"))
	case MetaArithmetic:
		return bytes.HasPrefix(reply, []byte("HD")) || bytes.HasPrefix(reply, []byte("VA "))
	case MetaSet, MetaDelete:
		return bytes.HasPrefix(reply, []byte("HD"))
	}
	return true // classic noreply hides every outcome
}

// AppendMetaMiss appends the reply of a meta request that found nothing, echoing the
// opaque and the key that line asks back. line may have its line end.
func AppendMetaMiss(dst, line []byte) []byte {
	dst = append(dst, "EN"...)
	if whole, ended := bytes.CutSuffix(line, []byte{'\n'}); ended {
		line = bytes.TrimSuffix(whole, []byte{'\r'})
	}
	_, rest := NextWord(line)
	key, flags := NextWord(rest)
	binary := false
	for word, rest := NextWord(flags); len(word) > 0; word, rest = NextWord(rest) {
		binary = binary || word[0] == 'b'
	}
	for word, rest := NextWord(flags); len(word) > 0; word, rest = NextWord(rest) {
		switch word[0] {
		case 'O':
			dst = append(append(dst, ' '), word...)
		case 'k':
			dst = append(append(dst, " k"...), key...)
			if binary {
				dst = append(dst, " b"...)
			}
		}
	}
	return append(dst, "\r\n"...)
}
