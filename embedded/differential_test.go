package embedded

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/internal/conformance"
	"cacherouter/internal/memcachedtest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// pair is a memcached process and an embedded server.
type pair [2]string

// startPair starts them, and makes tokens below 10 older than any to come.
func startPair(t *testing.T) pair {
	p := pair{memcachedtest.Start(t, memcachedtest.Steady...).Addr(), start(t, Config{}).Addr()}
	warm := make([]string, 10)
	for i := range warm {
		warm[i] = "ms warm 0\r\n\r\n"
	}
	if _, err := p.compare(warm); err != nil {
		t.Fatal(err)
	}
	return p
}

// compare has the same session with both and returns in what the replies differ.
func (p pair) compare(requests []string) (diff string, err error) {
	var transcripts [2][]string
	for i, addr := range p {
		if err := conformance.Flush(addr); err != nil {
			return "", err
		}
		transcripts[i], err = conformance.Transcript(addr, conformance.Conversation{Requests: requests})
		if err != nil {
			return "", err
		}
	}
	return cmp.Diff(transcripts[0], transcripts[1]), nil
}

// Random sessions must go the same way as with real memcached, byte for byte where
// nothing is masked. Requests are well-formed as far as the parser goes, for what it
// refuses has its own tests; flags and numbers may be wrong. Times to live are far from
// each other and from now, so that it does not matter when the second turns.
func TestSessionsAsOnMemcached(t *testing.T) {
	p := startPair(t)
	rapid.Check(t, func(t *rapid.T) {
		diff, err := p.compare(rapid.SliceOfN(request, 1, 40).Draw(t, "requests"))
		if err != nil {
			t.Fatal(err)
		}
		if diff != "" {
			t.Errorf("memcached (-) and the embedded server (+) differ:\n%s", diff)
		}
	})
}

// Sessions that chance seldom finds must go the same way too.
func TestCornersAsOnMemcached(t *testing.T) {
	p := startPair(t)
	f := func(name string, lines ...string) {
		t.Helper()
		for i := range lines {
			lines[i] += "\r\n"
		}
		diff, err := p.compare(lines)
		if err != nil {
			t.Fatal(err)
		}
		if diff != "" {
			t.Errorf("%s: memcached (-) and the embedded server (+) differ:\n%s", name, diff)
		}
	}
	f("a late writer leaves the winner alone", "ms a 1\r\nx", "md a I", "mg a", "ms a 1 C1 I\r\ny", "mg a v t", "mg a")
	f("a late writer of what is fresh", "ms a 1 T1000\r\nx", "ms a 1 C1 I T0\r\ny", "mg a v t", "mg a v")
	f("append clears the marks", "ms a 1\r\nx", "md a I", "append a 0 0 1\r\ny", "mg a v h")
	f("a new invalidation gives a new win", "ms a 1\r\nx", "md a I", "mg a", "mg a", "md a I T1000", "mg a t", "mg a t")
	f("a time to live is lost when a number grows", "ms n 1\r\n9", "ma n T1000 t v", "mg n t v", "ma n T1000 t v", "mg n t v")
	f("flags and time to live stay when a number grows", "ms n 1 F5 T1000\r\n9", "incr n 1", "mg n t f v s")
	f("a vivified base64 key is shown decoded", "mg YWJj b k N0 v", "mg YWJj b k", "mg abc k", "ms YWJj 1 b\r\nx", "mg abc k", "me abc", "me YWJj b")
	f("append forgets that the key was base64", "ms YWJj 1 b\r\nx", "ms YWJj 1 b MA k\r\ny", "mg YWJj b k v")
	f("a number made quietly", "ma n N0 q", "ma n q", "ma n N0 q v", "ma none q", "ma n q Mx")
	f("an opaque too long comes after the deed", "ms n 1\r\n1", "ma n v O"+strings.Repeat("o", 32), "mg n v", "md n O"+strings.Repeat("o", 32), "mg n v")
	f("half a mode", "ms a 1 M\r\nx", "ma a M", "mg a M", "mg a Mzz", "mg a Mz")
	f("the last wrong flag is told", "mg a Tx b", "mg a b Tx", "mg a b Fx", "mg a Jx Dx", "mg a Dx Jx", "ms a 1 Tx Mx Fx\r\nx", "mg a Tx !", "mg a \xff")
	f("a cas that nothing can match", "ms a 1 C0\r\nx", "ms a 1\r\nx", "ms a 1 C0\r\nx", "md a C0", "ma a C0", "ms a 1 MA C0\r\ny", "ms a 1 MA C1\r\ny", "mg a v")
}

var (
	request = rapid.OneOf(classic, classic, arithmetic, meta, meta, meta, metaStore, metaStore)

	// YWJj is abc in base64, and both are keys.
	key = rapid.SampledFrom([]string{"a", "b", "abc", "YWJj"})
	// No value is white space alone: memcached would look for a number behind its end.
	text    = rapid.SampledFrom([]string{"", "x", "hello", "0", "9", "99", "007", "18446744073709551615", "7  ", " 7", "7x", "a\r\nb"})
	exptime = rapid.SampledFrom([]string{"0", "0", "0", "1000", "-1", "2592001", "4294967296", "4294968296", "2147483648"})
	number  = rapid.SampledFrom([]string{"0", "1", "5", "90", "18446744073709551615", "18446744073709551616", "-1", "x", "01", ""})
	flags   = rapid.SampledFrom([]string{"0", "7", "4294967295", "4294967297"})
	quiet   = rapid.SampledFrom([]string{"", "", "", " noreply"})
)

var classic = rapid.Custom(func(t *rapid.T) string {
	k := key.Draw(t, "key")
	switch verb := rapid.SampledFrom(strings.Fields("get gets gat gats set set add replace append prepend cas touch delete flush_all")).Draw(t, "verb"); verb {
	case "get", "gets":
		return fmt.Sprintf("%s %s %s\r\n", verb, k, key.Draw(t, "other key"))
	case "gat", "gats":
		return fmt.Sprintf("%s %s %s %s\r\n", verb, exptime.Draw(t, "exptime"), k, key.Draw(t, "other key"))
	case "touch":
		return fmt.Sprintf("touch %s %s%s\r\n", k, exptime.Draw(t, "exptime"), quiet.Draw(t, "quiet"))
	case "delete":
		return fmt.Sprintf("delete %s%s\r\n", k, quiet.Draw(t, "quiet"))
	case "flush_all":
		return "flush_all\r\n"
	case "cas":
		v, token := text.Draw(t, "value"), rapid.SampledFrom([]string{"{cas}", "{cas}", "0", "1", "99999999"}).Draw(t, "token")
		return fmt.Sprintf("cas %s %s %s %d %s%s\r\n%s\r\n", k, flags.Draw(t, "flags"), exptime.Draw(t, "exptime"), len(v), token, quiet.Draw(t, "quiet"), v)
	default:
		v := text.Draw(t, "value")
		return fmt.Sprintf("%s %s %s %s %d%s\r\n%s\r\n", verb, k, flags.Draw(t, "flags"), exptime.Draw(t, "exptime"), len(v), quiet.Draw(t, "quiet"), v)
	}
})

var arithmetic = rapid.Custom(func(t *rapid.T) string {
	verb := rapid.SampledFrom([]string{"incr", "decr"}).Draw(t, "verb")
	n := number.Filter(func(s string) bool { return s != "" }).Draw(t, "delta")
	return fmt.Sprintf("%s %s %s%s\r\n", verb, key.Draw(t, "key"), n, quiet.Draw(t, "quiet"))
})

var meta = rapid.Custom(func(t *rapid.T) string {
	verb := rapid.SampledFrom([]string{"mg", "mg", "md", "ma", "ma", "me", "mn"}).Draw(t, "verb")
	switch verb {
	case "mn":
		return "mn\r\n"
	case "me":
		return fmt.Sprintf("me %s%s\r\n", key.Draw(t, "key"), rapid.SampledFrom([]string{"", " b"}).Draw(t, "b"))
	}
	return fmt.Sprintf("%s %s%s\r\n", verb, key.Draw(t, "key"), metaWords(t))
})

var metaStore = rapid.Custom(func(t *rapid.T) string {
	v := text.Draw(t, "value")
	return fmt.Sprintf("ms %s %d%s\r\n%s\r\n", key.Draw(t, "key"), len(v), metaWords(t), v)
})

// metaWords draws flags. All letters that the server knows are there, and a few that are
// wrong; q only once, as the parser sees to a second.
func metaWords(t *rapid.T) string {
	var b strings.Builder
	for i, n := 0, rapid.IntRange(0, 6).Draw(t, "flags"); i < n; i++ {
		word := metaWord.Draw(t, "flag")
		if strings.HasPrefix(word, "q") && strings.Contains(b.String(), " q") {
			continue
		}
		b.WriteString(" " + word)
	}
	return b.String()
}

var metaWord = rapid.Custom(func(t *rapid.T) string {
	letter := rapid.SampledFrom(strings.Split("bcfhkqstuvvPLIOCCFMMNTRJD", "")).Draw(t, "letter")
	switch letter {
	case "O":
		return "O" + strings.Repeat("o", rapid.SampledFrom([]int{0, 1, 31, 32}).Draw(t, "opaque"))
	case "C":
		return "C" + rapid.SampledFrom([]string{"{cas}", "{cas}", "{cas}", "0", "5", "99999999", "x"}).Draw(t, "token")
	case "F":
		return "F" + rapid.SampledFrom([]string{"0", "7", "4294967297", "-1", "x"}).Draw(t, "flags")
	case "M":
		return "M" + rapid.SampledFrom([]string{"S", "E", "A", "P", "R", "I", "D", "+", "-", "x", "", "SS"}).Draw(t, "mode")
	case "N", "T":
		return letter + rapid.OneOf(exptime, rapid.SampledFrom([]string{"1000", "x", ""})).Draw(t, "exptime")
	case "R":
		return "R" + rapid.SampledFrom([]string{"30", "5000", "0", "-1", "x"}).Draw(t, "recache")
	case "J", "D":
		return letter + number.Draw(t, "number")
	case "P", "L":
		return letter + "path"
	}
	if rapid.IntRange(0, 99).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]string{"!", "x", "E1", "S1", "\xff", letter + letter}).Draw(t, "odd flag")
	}
	return letter
})
