package memproto

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// This file is a second parser, slow and plain, written from what memcached does rather
// than from the first one. Tests hold the two against each other.

// seen is what a parser has made of one request. Fields that say nothing about a
// refused request are left empty there.
type seen struct {
	Status  Status
	Verb    Verb
	Keys    []string
	Data    string
	Forward string
	Refusal string
	Skip    int
	NoReply bool
	Base64  bool
	Vivify  bool
	Drops   bool
}

const hangup = "hang up"

// reference parses a stream; maxValue is as in Parser.
type reference struct {
	stream   string
	maxValue int
}

// all returns every request that the stream holds whole.
func (f *reference) all() (all []seen) {
	for {
		e, ok := f.next()
		if !ok {
			return all
		}
		all = append(all, e)
		if e.Status == Hangup {
			return all
		}
		f.stream = f.stream[min(e.Skip, len(f.stream)):]
	}
}

func (f *reference) next() (seen, bool) {
	line, rest, found := strings.Cut(f.stream, "\n")
	if !found {
		return seen{}, false
	}
	ending := "\n"
	if len(line) > 1 && strings.HasSuffix(line, "\r") {
		line, ending = line[:len(line)-1], "\r\n"
	}
	l := refLine{text: strings.TrimLeft(line, " "), maxValue: f.maxValue}
	l.words = spaced(l.text)
	e := l.judge()
	if l.block < 0 {
		f.stream = rest
		e.finish(l.text, ending)
		return e, true
	}
	if len(rest) < l.block+2 {
		return seen{}, false
	}
	e.Data, f.stream = rest[:l.block+2], rest[l.block+2:]
	e.finish(l.text, ending)
	if !strings.HasSuffix(e.Data, "\r\n") {
		refusal := "CLIENT_ERROR bad data chunk"
		if e.NoReply && e.Verb != MetaSet {
			refusal = ""
		}
		return seen{Status: Refused, Refusal: refusal}, true
	}
	return e, true
}

// finish works out what a backend gets.
func (e *seen) finish(text, ending string) {
	switch {
	case e.Status != Complete:
	case e.NoReply:
		e.Forward = withoutQuiet(e.Verb, text) + "\r\n" + e.Data
	default:
		e.Forward = text + ending + e.Data
	}
}

// withoutQuiet takes the word that asks for silence out of a line.
func withoutQuiet(v Verb, text string) string {
	pieces := regexp.MustCompile(`[^ ]+| +`).FindAllString(text, -1)
	words := 0
	for i, p := range pieces {
		if p[0] == ' ' {
			continue
		}
		words++
		meta := v == MetaGet || v == MetaDelete || v == MetaArithmetic
		if meta && words > 2 && p[0] == 'q' || v == MetaSet && words > 3 && p[0] == 'q' {
			return strings.Join(slices.Delete(pieces, i, i+1), "")
		}
	}
	at := strings.LastIndex(text, "noreply")
	return text[:at] + text[at+len("noreply"):]
}

func spaced(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' })
}

// refLine is one command line being judged; block is the length of the data that
// follows it, negative if none does.
type refLine struct {
	text     string
	words    []string
	block    int
	maxValue int
}

// wordLimits are the least and the most words of each command, as 1.6.18 counts them.
var wordLimits = map[string][2]int{
	"get": {2, 0}, "gets": {2, 0}, "gat": {2, 0}, "gats": {2, 0},
	"set": {5, 6}, "add": {5, 6}, "replace": {5, 6}, "append": {5, 6}, "prepend": {5, 6},
	"cas": {6, 7}, "incr": {3, 4}, "decr": {3, 4}, "touch": {3, 4}, "delete": {2, 4},
	"mg": {2, 0}, "ms": {2, 0}, "md": {2, 0}, "ma": {2, 0}, "me": {1, 0}, "mn": {1, 0},
	"version": {1, 0}, "verbosity": {2, 3}, "flush_all": {1, 3}, "stats": {1, 0},
	"cache_memlimit": {2, 3}, "shutdown": {1, 0}, "quit": {1, 0},
	"lru": {1, 0}, "slabs": {1, 0}, "lru_crawler": {1, 0}, "watch": {1, 0},
	"refresh_certs": {1, 0}, "extstore": {1, 0}, "bget": {1, 0}, "misbehave": {1, 0}, "debugtime": {1, 0},
}

func refused(line string, quiet bool) seen {
	if quiet {
		line = ""
	}
	return seen{Status: Refused, Refusal: line}
}

func (l *refLine) judge() seen {
	l.block = -1
	if len(l.words) == 0 || len(l.words[0]) < 2 {
		return refused("ERROR", false)
	}
	limits, known := wordLimits[l.words[0]]
	n := len(l.words)
	switch {
	case !known && strings.HasPrefix(l.words[n-1], "HTTP/") && !strings.ContainsAny(l.words[0][:1], "gsacidt"):
		return seen{Status: Hangup}
	case !known || n < limits[0] || limits[1] > 0 && n > limits[1]:
		return refused("ERROR", false)
	}
	switch l.words[0] {
	case "get", "gets":
		return l.retrieval(l.words[1:])
	case "gat", "gats":
		if !refNumber(l.words[1], true) {
			return refused("CLIENT_ERROR invalid exptime argument", false)
		}
		if n == 2 {
			return refused("END", false)
		}
		return l.retrieval(l.words[2:])
	case "set", "add", "replace", "append", "prepend", "cas":
		return l.store()
	case "mg", "md", "ma", "me":
		return l.meta()
	case "ms":
		return l.metaSet()
	case "incr", "decr", "touch", "delete":
		return l.keyed()
	}
	return seen{Status: Complete, Verb: verbNamed(l.words[0])}
}

// verbNamed finds a verb by its name; commands without one are denied.
func verbNamed(name string) Verb {
	for v := range NumVerbs {
		if v.String() == name {
			return v
		}
	}
	return Denied
}

func (l *refLine) retrieval(keys []string) seen {
	for _, k := range keys {
		if len(k) > 250 || strings.Contains(k, "\x00") {
			return refused("CLIENT_ERROR bad command line format", false)
		}
	}
	return seen{Status: Complete, Verb: verbNamed(l.words[0]), Keys: keys}
}

func (l *refLine) badKey() bool {
	return len(l.words[1]) > 250 || strings.Contains(l.text, "\x00")
}

func (l *refLine) keyed() seen {
	n := len(l.words)
	quiet := n > 2 && l.words[n-1] == "noreply"
	args := l.words[2:n]
	if quiet {
		args = l.words[2 : n-1]
	}
	if l.words[0] == "delete" && len(args) > 0 && !(len(args) == 1 && args[0] == "0") {
		return refused("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]", quiet)
	}
	if quiet && l.words[0] != "delete" && len(args) == 1 && args[0] == "noreply" {
		return refused("", true) // no number, and nobody hears of it
	}
	if l.badKey() {
		return refused("CLIENT_ERROR bad command line format", quiet)
	}
	return seen{Status: Complete, Verb: verbNamed(l.words[0]), Keys: l.words[1:2], NoReply: quiet}
}

func (l *refLine) store() seen {
	quiet := l.words[len(l.words)-1] == "noreply"
	length, ok := refLength(l.words[4])
	if !ok {
		return refused("CLIENT_ERROR bad command line format", quiet)
	}
	bad := l.badKey() || !refNumber(l.words[2], false) || !refNumber(l.words[3], true)
	bad = bad || l.words[0] == "cas" && !refNumber(l.words[5], false)
	e := refused("CLIENT_ERROR bad command line format", quiet)
	if !bad && l.maxValue > 0 && length > l.maxValue {
		e = refused("SERVER_ERROR object too large for cache", quiet)
		e.Drops = l.words[0] == "set"
		bad = true
	}
	if bad {
		e.Skip = length + 2
		return e
	}
	l.block = length
	return seen{Status: Complete, Verb: verbNamed(l.words[0]), Keys: l.words[1:2], NoReply: quiet}
}

func (l *refLine) metaSet() seen {
	if len(l.words) == 2 {
		return refused("CLIENT_ERROR bad command line format", false)
	}
	length, ok := refLength(l.words[2])
	switch {
	case !ok && len(l.words) >= 20 && len(l.words[1]) <= 250:
		return refused("CLIENT_ERROR options flags too long", false)
	case !ok:
		return refused("CLIENT_ERROR bad command line format", false)
	}
	e := l.flags(l.words[3:])
	switch {
	case l.badKey():
		e = refused("CLIENT_ERROR bad command line format", false)
	case len(l.words) >= 20:
		e = refused("CLIENT_ERROR options flags too long", false)
	case e.Status == Refused:
	case l.maxValue > 0 && length > l.maxValue:
		e = refused("SERVER_ERROR object too large for cache", false)
		e.Drops = true
	default:
		l.block = length
		return e
	}
	e.Skip = length + 2
	return e
}

func (l *refLine) meta() seen {
	v := verbNamed(l.words[0])
	switch n := len(l.words); {
	case n == 1 || l.badKey():
		return refused("CLIENT_ERROR bad command line format", false)
	case n >= 20 && v == MetaGet:
		return refused("CLIENT_ERROR options flags are too long", false)
	case n >= 20 && v != MetaDebug:
		return refused("CLIENT_ERROR options flags too long", false)
	}
	return l.flags(l.words[2:])
}

func (l *refLine) flags(flags []string) seen {
	v := verbNamed(l.words[0])
	e := seen{Status: Complete, Verb: v, Keys: l.words[1:2]}
	quiets := 0
	for _, f := range flags {
		switch f[0] {
		case 'q':
			quiets++
		case 'b':
			e.Base64 = true
		case 'N', 'R':
			e.Vivify = true
		}
	}
	if v == MetaDebug {
		quiets = 0
	}
	e.NoReply = quiets == 1
	switch {
	case quiets > 1 && (v == MetaDelete || v == MetaArithmetic):
		return refused("CLIENT_ERROR invalid or duplicate flag", false)
	case quiets > 1:
		return refused("CLIENT_ERROR duplicate flag", false)
	}
	return e
}

// strtoll is the grammar of C's strtoll and strtoull in base 10, with the rule that
// memcached adds: white space or the end must follow the digits.
var strtoll = regexp.MustCompile(`^[\t\n\v\f\r ]*([+-]?)([0-9]+)(?:[\t\n\v\f\r ]|$)`)

// refValue returns the value of a number without bounds.
func refValue(word string) (*big.Int, bool) {
	m := strtoll.FindStringSubmatch(word)
	if m == nil {
		return nil, false
	}
	n, ok := new(big.Int).SetString(m[2], 10)
	if m[1] == "-" {
		n.Neg(n)
	}
	return n, ok
}

// refNumber reports whether memcached takes a number. Unsigned ones are read with
// strtoull, which negates modulo 2^64; only when the result has its top bit set does
// memcached look for a minus, anywhere in the word.
func refNumber(word string, signed bool) bool {
	n, ok := refValue(word)
	if !ok {
		return false
	}
	top := new(big.Int).Lsh(big.NewInt(1), 63)
	if signed {
		return n.Cmp(new(big.Int).Neg(top)) >= 0 && n.Cmp(top) < 0
	}
	all := new(big.Int).Lsh(big.NewInt(1), 64)
	if new(big.Int).Abs(n).Cmp(all) >= 0 {
		return false
	}
	n.Mod(n, all)
	return n.Cmp(top) < 0 || !strings.Contains(word, "-")
}

// refLength reads the length of a data block. memcached 1.6.18 keeps the lower 32 bits
// of what it reads; later ones refuse what does not fit, and so do we.
func refLength(word string) (int, bool) {
	n, ok := refValue(word)
	if !ok || n.Sign() < 0 || n.Cmp(big.NewInt(1<<31-3)) > 0 {
		return 0, false
	}
	return int(n.Int64()), true
}
