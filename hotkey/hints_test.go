package hotkey

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The encoding is fixed: routers of different versions read it.
func TestHintsEncoding(t *testing.T) {
	hints := []Hint{{Hash: 1, Rate: 1000, Level: Hot}, {Hash: 0xfedcba9876543210, Rate: 1<<32 - 1, Level: Severe}}
	got := hex.EncodeToString(AppendHints([]byte{0xff}, hints))
	if want := "ff01" + "0000000000000001" + "400003e8" + "fedcba9876543210" + "bfffffff"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestHintsRefused(t *testing.T) {
	hint := func(hash, level byte) string {
		return "\x00\x00\x00\x00\x00\x00\x00" + string(hash) + string(level<<6) + "\x00\x00\x01"
	}
	many := ""
	for i := range byte(MaxHints) {
		many += hint(i, 0)
	}
	if got, err := ParseHints([]byte("\x01" + many)); err != nil || len(got) != MaxHints {
		t.Errorf("%d hints, %v", len(got), err)
	}
	for name, b := range map[string]string{
		"nothing": "", "another version": "\x02" + hint(1, 0), "no such level": "\x01" + hint(1, 3),
		"a hash twice": "\x01" + hint(1, 0) + hint(1, 0), "out of order": "\x01" + hint(2, 0) + hint(1, 0),
		"a piece": "\x01" + hint(1, 0)[:11], "too many": "\x01" + many + hint(MaxHints, 0),
	} {
		if got, err := ParseHints([]byte(b)); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
}

// What is read has one encoding, the one it was read from.
func FuzzHints(f *testing.F) {
	f.Add([]byte("\x01"))
	f.Add(AppendHints(nil, []Hint{{1, 1000, Hot}, {2, 3, Cold}, {1 << 63, 1, Severe}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		hints, err := ParseHints(b)
		if err != nil {
			return
		}
		if again := AppendHints(nil, hints); !bytes.Equal(again, b) {
			t.Errorf("%x is read as %v, which is %x", b, hints, again)
		}
		if len(hints) > MaxHints {
			t.Errorf("%d hints", len(hints))
		}
	})
}

// told is what the keys of a simulated router are elsewhere.
func elsewhere(p *Peers, c *Collector, now time.Duration) map[string]Elsewhere {
	r := c.Report(100)
	p.Join(r, now)
	all := make(map[string]Elsewhere)
	for _, k := range r.Keys {
		if k.Elsewhere != (Elsewhere{}) {
			all[k.Key] = k.Elsewhere
		}
	}
	return all
}

func TestHotElsewhere(t *testing.T) {
	router := func(rates map[string]int) *traffic {
		s := newTraffic(t, 1, Config{Servers: 8})
		s.each = func() {
			for key, n := range rates {
				s.request(key, n)
			}
		}
		s.run(10 * second)
		return s
	}
	a := router(map[string]int{"everywhere": 1000, "here": 1000, "warm there": 300})
	b := router(map[string]int{"everywhere": 2000, "there": 500, "warm there": 20})
	c := router(map[string]int{"everywhere": 500})
	var p Peers
	hear := func(name string, from *Collector) {
		t.Helper()
		hints, err := ParseHints(AppendHints(nil, from.Hints()))
		if err != nil {
			t.Fatal(err)
		}
		for i := range hints { // less than one lost in rounding
			hints[i].Rate = (hints[i].Rate + 1) / 10 * 10
		}
		p.Heard(name, hints, a.now)
	}
	check := func(now time.Duration, want map[string]Elsewhere) {
		t.Helper()
		if diff := cmp.Diff(want, elsewhere(&p, a.Collector, now)); diff != "" {
			t.Error(diff)
		}
	}
	check(a.now, map[string]Elsewhere{})
	hear("b", c.Collector) // replaced
	hear("b", b.Collector)
	hear("c", c.Collector)
	both := map[string]Elsewhere{"everywhere": {2, 25000}, "warm there": {0, 200}}
	check(a.now, both)
	check(a.now+hintsLast-1, both)
	p.Heard("c", c.Hints()[:0], a.now+second)
	check(a.now+second, map[string]Elsewhere{"everywhere": {1, 20000}, "warm there": {0, 200}})
	check(a.now+hintsLast, map[string]Elsewhere{})
	hear("b", b.Collector)
	p.Gone("b")
	check(a.now, map[string]Elsewhere{})
}

// A router tells of the keys with the highest rates, and names none.
func TestHintsAreTheTop(t *testing.T) {
	s := newTraffic(t, 1, Config{Servers: 8})
	s.each = func() {
		for i := range 100 {
			s.request(fmt.Sprint("secret", i), 100+i)
		}
	}
	s.run(5 * second)
	hints := s.Hints()
	told := make(map[uint64]bool)
	for _, h := range hints {
		told[h.Hash] = true
	}
	for i := range 100 {
		if want := i >= 100-MaxHints; told[hashOfString(fmt.Sprint("secret", i))] != want {
			t.Errorf("secret%d is told of: %v", i, !want)
		}
	}
	if b := AppendHints(nil, hints); bytes.Contains(b, []byte("secret")) || len(b) != 769 {
		t.Errorf("%d bytes: %q", len(b), b)
	}
}

func TestPeersAreBounded(t *testing.T) {
	var p Peers
	for i := range 2 * maxPeers {
		p.Heard(fmt.Sprint(i), nil, time.Duration(i))
	}
	if len(p.told) != maxPeers {
		t.Errorf("%d routers are remembered", len(p.told))
	}
	if _, ok := p.told[fmt.Sprint(maxPeers)]; !ok {
		t.Error("another than the oldest was forgotten")
	}
}
