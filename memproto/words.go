package memproto

import "bytes"

// NextWord returns the first word of s and what follows it. Only spaces separate
// words. The word is empty at the end of the line. Both point into s.
func NextWord(s []byte) (word, rest []byte) {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	if end := bytes.IndexByte(s, ' '); end >= 0 {
		return s[:end], s[end:]
	}
	return s, nil
}

// wordList holds the first words of a line, enough for every shape.
type wordList struct {
	w [8][]byte
	n int // words on the line, also those beyond len(w)
}

func (l *wordList) split(line []byte) {
	l.n = 0
	for {
		word, rest := NextWord(line)
		if len(word) == 0 {
			return
		}
		if l.n < len(l.w) {
			l.w[l.n] = word
		}
		l.n++
		line = rest
	}
}

// last returns the last word; the line must have at most len(l.w) of them.
func (l *wordList) last() []byte { return l.w[l.n-1] }
