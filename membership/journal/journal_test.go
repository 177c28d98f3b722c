package journal

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func take(j *Journal) []string {
	var all []string
	for {
		keys, _ := j.Take(2)
		if len(keys) == 0 {
			slices.Sort(all)
			return all
		}
		for _, k := range keys {
			all = append(all, string(k.Key))
		}
	}
}

func TestKeysOnce(t *testing.T) {
	j := New(Config{})
	key := []byte("one")
	for _, k := range []string{"one", "two", "six", "one"} {
		copy(key, k) // the journal must not keep the caller's slice
		j.Missed(uint64(k[0]), key)
	}
	j.Missed('o', []byte("other")) // the hash of "one"
	if j.Len() != 4 {
		t.Errorf("%d keys", j.Len())
	}
	if diff := cmp.Diff([]string{"one", "other", "six", "two"}, take(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if j.Len() != 0 || j.Overflow() {
		t.Error("not empty after everything was taken")
	}
}

func TestOverflow(t *testing.T) {
	f := func(c Config, overflows func(*Journal)) {
		t.Helper()
		j := New(c)
		j.Missed(1, []byte("a"))
		overflows(j)
		if keys, overflow := j.Take(10); !overflow || len(keys) > 0 {
			t.Errorf("overflow %v with %v, want no keys", overflow, keys)
		}
		j.Missed(1, []byte("b"))
		if j.Len() != 0 || !j.Overflow() {
			t.Error("an overflowed journal took a key")
		}
		j.Reset()
		j.Missed(1, []byte("c"))
		if diff := cmp.Diff([]string{"c"}, take(j)); diff != "" || j.Overflow() {
			t.Errorf("after a reset: %s", diff)
		}
	}
	f(Config{MaxKeys: 3}, func(j *Journal) {
		for i := range 3 {
			j.Missed(uint64(i), []byte{'x', byte(i)})
		}
	})
	f(Config{MaxBytes: 5}, func(j *Journal) { j.Missed(2, []byte("12345")) })
	f(Config{}, (*Journal).MissedAll)
}

// TestNothingIsForgotten: whatever is noted, and taken in whatever portions, each key
// comes out, or the journal says that it overflowed; and it stays within its bounds.
func TestNothingIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{MaxKeys: rapid.IntRange(1, 30).Draw(t, "keys"), MaxBytes: rapid.IntRange(1, 100).Draw(t, "bytes")}
		j := New(c)
		due := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := rapid.StringMatching(`[a-c]{1,4}`).Draw(t, "key")
			j.Missed(uint64(len(k)), []byte(k))
			due[k] = true
			if j.count > c.MaxKeys || j.bytes > c.MaxBytes {
				t.Fatalf("%d keys of %d bytes", j.count, j.bytes)
			}
			if rapid.Bool().Draw(t, "take") {
				keys, _ := j.Take(rapid.IntRange(1, 5).Draw(t, "max"))
				for _, k := range keys {
					delete(due, string(k.Key))
				}
			}
		}
		if j.Overflow() {
			return
		}
		for _, k := range take(j) {
			delete(due, k)
		}
		if len(due) > 0 {
			t.Fatalf("forgotten: %v", due)
		}
	})
}

func TestManyLoops(t *testing.T) {
	j := New(Config{})
	var wg sync.WaitGroup
	for loop := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				j.Missed(uint64(i), fmt.Append(nil, loop, "-", i))
			}
		})
	}
	wg.Wait()
	if j.Len() != 4000 {
		t.Errorf("%d keys", j.Len())
	}
}

func TestReadmission(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	began := start.Add(time.Hour)
	f := func(want Action, o Outage) {
		t.Helper()
		o.Began = began
		if o.Ended.IsZero() {
			o.Ended = began.Add(time.Minute)
		}
		if got := (Policy{}).Decide(o); got != want {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
		if want == Flush {
			want = Quarantine
		}
		if got := (Policy{Quarantine: true}).Decide(o); got != want {
			t.Errorf("%+v with quarantine: %v, want %v", o, got, want)
		}
	}
	old, same := Process{1, start}, Process{1, start.Add(2 * time.Second)}
	f(Admit, Outage{Before: old, After: same})
	f(Replay, Outage{Before: old, After: same, Missed: 3})
	f(Flush, Outage{Before: old, After: same, Overflow: true})
	f(Flush, Outage{Before: old, After: same, Missed: 3, Lost: true})
	f(Flush, Outage{Before: old, After: same, Ended: began.Add(time.Hour)})
	f(Flush, Outage{Lost: true}) // not known to be another process
	f(Flush, Outage{Before: old, Lost: true})
	for _, other := range []Process{{2, began}, {1, began.Add(time.Minute)}} {
		f(Admit, Outage{Before: old, After: other, Missed: 3, Overflow: true, Lost: true, Ended: began.Add(time.Hour)})
	}
	unnoticed := Process{2, began.Add(-time.Minute)}
	f(Flush, Outage{Before: old, After: unnoticed, Lost: true})
	f(Replay, Outage{Before: old, After: unnoticed, Missed: 1})
}
