package memproto

import "bytes"

// parseStore reads the line of a classic store. The length is read first: with it the
// data block of a refused line can be swallowed.
func (p *Parser) parseStore(r *Request, words *wordList) Status {
	r.NoReply = r.endsInNoreply(words)
	length, ok := valueLength(words.w[4])
	if !ok {
		return r.refuseUnless(LineBadFormat)
	}
	r.Key, r.NumKeys = words.w[1], 1
	switch {
	case !validKey(r.Key) || bytes.IndexByte(r.Line, 0) >= 0 || !storeNumbers(r.Verb, words):
		r.refuseUnless(LineBadFormat)
	case p.MaxValue > 0 && length > p.MaxValue:
		r.refuseUnless(LineTooLarge)
		r.Drops = r.Verb == Set
	default:
		return r.expectData(length)
	}
	r.Skip = length + 2
	return Refused
}

// storeNumbers checks flags, exptime and the cas token, as memcached reads them.
func storeNumbers(v Verb, words *wordList) bool {
	_, flags := ParseUint(words.w[2])
	_, exptime := ParseInt(words.w[3])
	cas := true
	if v == Cas {
		_, cas = ParseUint(words.w[5])
	}
	return flags && exptime && cas
}

func valueLength(word []byte) (int, bool) {
	n, ok := ParseInt(word)
	return int(n), ok && n >= 0 && n <= maxInt32Value
}

// expectData says that a value of n bytes follows the line.
func (r *Request) expectData(n int) Status {
	r.Need = n + 2
	return Incomplete
}

// parseMetaSet reads the line of an ms. Its flags are the backend's to judge, but for
// q, which must not reach it.
func (p *Parser) parseMetaSet(r *Request, words *wordList) Status {
	if words.n == 2 {
		return r.refuse(LineBadFormat)
	}
	length, ok := valueLength(words.w[2])
	if !ok {
		if words.n >= maxMetaWords && validKey(words.w[1]) { // counted first
			return r.refuse("CLIENT_ERROR options flags too long")
		}
		return r.refuse(LineBadFormat)
	}
	r.Key, r.NumKeys = words.w[1], 1
	_, rest := NextWord(r.Line)
	_, rest = NextWord(rest)
	_, flags := NextWord(rest)
	switch refusal := r.parseFlags(flags); {
	case !validKey(r.Key) || bytes.IndexByte(r.Line, 0) >= 0:
		r.refuse(LineBadFormat)
	case words.n >= maxMetaWords:
		r.refuse("CLIENT_ERROR options flags too long")
	case refusal != "":
		r.refuse(refusal)
	case p.MaxValue > 0 && length > p.MaxValue:
		r.refuse(LineTooLarge)
		r.Drops = true
	default:
		return r.expectData(length)
	}
	r.Skip = length + 2
	return Refused
}

// parseData takes the data block behind the line that ends at b[line-1].
func (p *Parser) parseData(b []byte, line int, r *Request) (int, Status) {
	total := line + r.Need
	if len(b) < total {
		r.Need = total
		return 0, Incomplete
	}
	start := line - len(r.raw)
	r.Need = 0
	r.raw = b[start:total]
	r.Data = b[line:total]
	if !bytes.HasSuffix(r.Data, []byte("\r\n")) {
		if r.Verb == MetaSet { // q does not silence it
			return total, r.refuse(LineBadChunk)
		}
		return total, r.refuseUnless(LineBadChunk)
	}
	return total, Complete
}
