package memproto

// NextWord returns the first word of s and what follows it. Only spaces separate
// words. The word is empty at the end of the line. Both point into s.
func NextWord(s []byte) (word, rest []byte) {
	i := 0
	for i < len(s) && s[i] == ' ' {
		i++
	}
	j := i
	for j < len(s) && s[j] != ' ' {
		j++
	}
	return s[i:j], s[j:]
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
