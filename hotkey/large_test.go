package hotkey

import (
	"fmt"
	"testing"
	"time"
)

const kib = 1 << 10

// move tells the first loop of a value.
func (s *traffic) move(key string, size int) {
	s.counters[0].Moved(hashOfString(key), []byte(key), size)
}

// alert lets one second pass, and wants to be told of key, "" for none.
func (s *traffic) alert(want string) {
	s.t.Helper()
	s.run(second)
	if l, _ := s.Alert(); l.Key != want {
		s.t.Fatalf("at %v the alert is for %q, want %q", s.now, l.Key, want)
	}
	if l, ok := s.Alert(); ok {
		s.t.Fatalf("another alert follows at once, for %q", l.Key)
	}
}

func TestLargeValues(t *testing.T) {
	s := newTraffic(t, 2, Config{MinBytes: 1 << 40, LargeValue: 100 * kib})
	s.each = func() {
		s.move("small", 100*kib-1)
		s.move("large", 300*kib)
		s.move("large", 100*kib)
		s.move("larger", 900*kib)
		s.counters[1].Moved(hashOfString("large"), []byte("large"), 200*kib)
	}
	s.alert("larger")
	s.alert("large")
	s.alert("")
	s.run(5 * second)
	got := s.Report(10).Large
	if len(got) != 2 || got[0].Key != "larger" || got[1].Key != "large" || got[0].Size != 900*kib || got[1].Size != 300*kib {
		t.Fatalf("%+v", got)
	}
	if r := got[1].Rate; r < 29 || r > 31 {
		t.Errorf("three times a tick are a rate of %v", r)
	}
	if got[1].For < 7*second || got[1].For > 8*second {
		t.Errorf("known for %v", got[1].For)
	}
	if got := s.Report(1).Large; len(got) != 1 || got[0].Key != "larger" {
		t.Errorf("the largest is %+v", got)
	}
}

// What was large is forgotten after a minute, and told of again when it comes back.
func TestLargeValuesAreForgotten(t *testing.T) {
	s := newTraffic(t, 1, Config{})
	s.move("k", 300*kib)
	s.alert("k")
	s.run(largeKeep - 2*second)
	if n := len(s.Report(10).Large); n != 1 {
		t.Errorf("%d large values after less than a minute", n)
	}
	s.run(2 * second)
	if n := len(s.Report(10).Large); n != 0 || len(s.heavy) != 0 {
		t.Errorf("%d large values after a minute, %d are followed", n, len(s.heavy))
	}
	s.move("k", 300*kib)
	s.alert("k")
}

// Somebody who stores ever larger values gets an alert a second, and no memory.
func TestLargeValuesAreBounded(t *testing.T) {
	s := newTraffic(t, 1, Config{MinBytes: 1 << 40})
	size, alerts := 300*kib, 0
	s.each = func() {
		for range 100 {
			size++
			s.move(fmt.Sprint("k", size), size)
		}
	}
	for range 100 {
		s.run(tick)
		if _, ok := s.Alert(); ok {
			alerts++
		}
		if len(s.heavy) > maxLarge {
			t.Fatalf("%d are followed", len(s.heavy))
		}
	}
	if alerts != 10 {
		t.Errorf("%d alerts in 10 s", alerts)
	}
	got := s.Report(100).Large
	for i := range got {
		if got[i].Size != size-i || got[i].Key != fmt.Sprint("k", size-i) {
			t.Errorf("place %d: %q with %d bytes, want %d", i, got[i].Key, got[i].Size, size-i)
		}
	}
	if len(got) != maxLarge {
		t.Errorf("%d large values", len(got))
	}
}

// The slots of what is forgotten go to others, and keep their own key and size.
func TestLargeValuesChangePlaces(t *testing.T) {
	c := NewCounter(1)
	var sample Sample
	at := func(now time.Duration, want ...string) {
		t.Helper()
		c.Sample(&sample, now)
		got := map[string]int{}
		for _, v := range sample.large.values[:sample.large.n] {
			got[string(v.key[:v.keySize])] = v.size
		}
		if len(got) != len(want) {
			t.Fatalf("at %v: %v, want %v", now, got, want)
		}
		for _, w := range want {
			if got[w] != len(w)*100*kib {
				t.Fatalf("at %v: %v, want %v", now, got, want)
			}
		}
	}
	move := func(key string) { c.Moved(hashOfString(key), []byte(key), len(key)*100*kib) }
	move("a")
	move("bb")
	move("ccc")
	at(0, "a", "bb", "ccc")
	move("ccc")
	move("bb")
	at(40*second, "a", "bb", "ccc")
	at(60*second, "bb", "ccc")
	move("dddd")
	at(99*second, "bb", "ccc", "dddd")
	at(100*second, "dddd")
}
