package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// session writes a client's requests, each chosen by the next bytes of a source, so that a fuzzer can steer it and a
// failing one can be cut short. It asks only what has one right answer:
//
//   - no cas token, time, version or statistic is repeated to the server, and those in replies are masked;
//   - no number gets shorter: memcached pads it with spaces, but not while a reply that shows it waits to be sent;
//   - no number is over 2^63, since memcached then looks for a minus sign even in what lies behind it in memory;
//   - no value is blank alone, for which memcached counts on from what lies behind it in memory;
//   - expiry is now, never, or far away;
//   - no storage command is refused with a readable length, since a router swallows its data block and memcached 1.6.18
//     does not. This and every other intended difference is a case in internal/conformance/testdata/router;
//   - no get has a key that is too long: at one, memcached 1.6.18 forgets the reply before, if that is not sent yet;
//   - no flag is asked that only later releases know, since a router passes it on;
//   - data blocks of the wrong length are short, and long values come in lines, so that what a server takes for a
//     command line then is never longer than one that ends a connection.
type session struct {
	source []byte
	out    strings.Builder
}

// write returns the requests that the source stands for, ended by a barrier.
func write(source []byte) string {
	s := session{source: source}
	for len(s.source) > 0 {
		s.request()
	}
	s.out.WriteString("mn\r\n")
	return s.out.String()
}

// pick takes a byte of the source and returns a number below n; 0 when the source is at its end.
func (s *session) pick(n int) int {
	if len(s.source) == 0 {
		return 0
	}
	b := s.source[0]
	s.source = s.source[1:]
	return int(b) % n
}

func (s *session) word(words ...string) string { return words[s.pick(len(words))] }

func (s *session) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

func (s *session) key() string {
	return s.word("a", "b", "c", "d", "number", "n2", "with:colon", "{tag}x", "é", "long"+strings.Repeat("k", 246))
}

// keys returns one to sixteen keys, with repetitions.
func (s *session) keys() string {
	keys := make([]string, s.pick(16)+1)
	for i := range keys {
		keys[i] = s.key()
	}
	return strings.Join(keys, " ")
}

func (s *session) exptime() string { return s.word("0", "0", "1000", "-1", "2592000") }

func (s *session) noreply() string { return s.word("", "", "", " noreply", " ", " NOREPLY") }

// value returns data whose length is now and then around a power of two, or large.
func (s *session) value() string {
	switch s.pick(8) {
	case 0:
		return s.word("", "\r\nx", "END\r\n", "VALUE a 0 1\r\nx", "\x00\xff\r\x01", "ERROR", "HD\r\n")
	case 1, 2:
		return s.word("0", "1", "99", "1000000000000000000", "1x", "-1")
	case 3:
		return lines(1<<(s.pick(13)) + s.pick(3) - 1)
	case 4:
		return lines(s.pick(8) * 20000)
	}
	return strings.Repeat("v", s.pick(60))
}

// lines returns n bytes of short lines.
func lines(n int) string {
	const line = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\r\n"
	return strings.Repeat(line, n/len(line)+1)[:n]
}

func (s *session) request() {
	switch s.pick(20) {
	case 0, 1, 2, 3:
		s.store()
	case 4, 5, 6:
		s.printf("%s %s\r\n", s.word("get", "get", "gets"), s.keys())
	case 7:
		s.printf("%s %s %s\r\n", s.word("gat", "gats"), s.exptime(), s.keys())
	case 8:
		s.printf("%s %s%s\r\n", s.word("incr", "incr", "decr")+" "+s.key(), s.word(" 0", " 0", " x", " -1", ""), s.noreply())
		s.printf("incr %s %s%s\r\n", s.key(), s.word("1", "7", "1000", "4294967296"), s.noreply())
	case 9:
		s.printf("delete %s%s%s\r\n", s.key(), s.word("", "", " 0"), s.noreply())
	case 10:
		s.printf("touch %s %s%s\r\n", s.key(), s.exptime(), s.noreply())
	case 11, 12:
		s.printf("mg %s%s\r\n", s.key(), s.flags("v", "v", "k", "f", "s", "t", "h", "q", "O12", "c", "u", "N0", "T0"))
	case 13:
		s.metaSet()
	case 14:
		s.printf("md %s%s\r\n", s.key(), s.flags("q", "k", "O5", "C1", "I", "T0", "x"))
	case 15:
		s.metaArithmetic()
	case 16:
		s.badBlock()
	case 17:
		s.nonsense()
	case 18:
		s.printf("%s\r\n", s.word("mn", "version", "verbosity 0", "flush_all", "flush_all noreply", "flush_all 0 ", "mn x"))
	case 19:
		s.printf("%s\r\n", "get "+s.key()+strings.Repeat(" missing", 100*s.pick(5)))
	}
}

func (s *session) store() {
	value := s.value()
	verb := s.word("set", "set", "set", "add", "replace", "append", "prepend", "cas")
	token := ""
	if verb == "cas" {
		token = " 18446744073709551615" // no item ever has this one
	}
	s.printf("%s %s %s %s %d%s%s\r\n%s\r\n", verb, s.key(), s.word("0", "1", "4294967295"), s.exptime(), len(value), token, s.noreply(), value)
}

// flags returns up to seven flags, each with a space before it; a repeated one is an error, which is wanted too.
func (s *session) flags(from ...string) string {
	var b strings.Builder
	for range s.pick(8) {
		b.WriteString(" " + s.word(from...))
	}
	return b.String()
}

func (s *session) metaSet() {
	value := s.value()
	s.printf("ms %s %d%s\r\n%s\r\n", s.key(), len(value),
		s.flags("q", "k", "O99", "F7", "T0", "T1000", "T-1", "MS", "ME", "MA", "MP", "MR", "MX", "C18446744073709551615", "I"), value)
}

// metaArithmetic keeps q and N apart: whether memcached hides the HD of a counter that it creates differs by release.
func (s *session) metaArithmetic() {
	if s.pick(2) == 0 {
		s.printf("ma %s%s\r\n", s.key(), s.flags("v", "q", "k", "t", "O3", "D5", "MI", "C1"))
	} else {
		s.printf("ma %s N0%s\r\n", s.key(), s.flags("v", "k", "t", "O3", "D5", "MI", "J10", "MX"))
	}
}

// badBlock sends a data block longer or shorter than it says, by up to four bytes. Those that are wanting are taken from
// a line of just four, for a get line that lost its verb would be too long.
func (s *session) badBlock() {
	n := s.pick(40)
	off := s.pick(9) - 4
	s.printf("%s %s 0 0 %d%s\r\n%s\r\nmn\r\n", s.word("set", "add", "append"), s.key(), n, s.word("", " noreply"), strings.Repeat("w", max(0, n+off)))
}

// nonsense is a line that is no request, or a wrong one that has no data block.
func (s *session) nonsense() {
	s.printf("%s\r\n", s.word(
		"", " ", "x", "nosuch", "GET a", "get", "gets", "gat", "gat 0", "gat x a", "touch a", "touch a x", "incr a", "delete",
		"delete a 5", "delete a b c", "set a", "set a 0 0", "set a 0 0 x", "set a 0 0 -1", "cas a 0 0 1", "mg", "ms a x", "ms a", "md", "ma",
		"mg a v v", "mg a b", "config get cluster", "verbosity", "flush_all x", "mget a", "stats nosuch", "\x01\x02", "set\ta 0 0 1",
		"mg "+strings.Repeat("k", 251), "incr "+strings.Repeat("k", 251)+" 1"))
}

// pieces cuts text at random places, often close together and often right after a CR.
func pieces(text string, seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	var cut []string
	for text != "" {
		n := 1 + random.IntN(1<<random.IntN(15))
		if i := strings.IndexByte(text, '\r'); i >= 0 && random.IntN(4) == 0 {
			n = i + 1
		}
		n = min(n, len(text))
		cut, text = append(cut, text[:n]), text[n:]
	}
	return cut
}
