package ledger

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func begin(t *testing.T, l *Ledger, del bool) Write {
	t.Helper()
	w, ok := l.Begin(0, del)
	if !ok {
		t.Fatal("a write is under way")
	}
	return w
}

func want(t *testing.T, r Read, value []byte, hit bool, v Verdict) {
	t.Helper()
	if got := r.Judge(value, hit); got != v {
		t.Errorf("%.40q, hit %v: %v, want %v", value, hit, got, v)
	}
}

func TestOnlyTheLastAcknowledgedWriteIsFresh(t *testing.T) {
	l := New(2, 50)
	want(t, l.Read(0), nil, false, Absent)
	one := begin(t, l, false)
	during := l.Read(0)
	want(t, during, one.Value, true, Fresh)
	one.End(true)
	want(t, l.Read(0), nil, false, Lost)
	two := begin(t, l, false)
	before := l.Read(0)
	two.End(true)
	want(t, before, one.Value, true, Fresh) // it began before the second was acknowledged
	want(t, before, nil, false, Absent)
	want(t, l.Read(0), one.Value, true, Stale)
	want(t, l.Read(0), two.Value, true, Fresh)
	want(t, l.Read(1), two.Value, true, Wrong)
	want(t, l.Read(0), compose(Key(0), 3, 50), true, Wrong) // nobody wrote it
}

func TestDeletedValuesDoNotComeBack(t *testing.T) {
	l := New(1, 50)
	one := begin(t, l, false)
	one.End(true)
	del := begin(t, l, true)
	if del.Value != nil {
		t.Error("a delete has a value")
	}
	want(t, l.Read(0), one.Value, true, Fresh)
	del.End(true)
	want(t, l.Read(0), one.Value, true, Stale)
	want(t, l.Read(0), nil, false, Absent)
	want(t, l.Read(0), compose(Key(0), 2, 50), true, Wrong) // the delete stored nothing
}

func TestFailedWritesMayBeSeenAtAnyTime(t *testing.T) {
	l := New(1, 50)
	one := begin(t, l, false)
	one.End(true)
	two := begin(t, l, false)
	two.End(false)
	want(t, l.Read(0), one.Value, true, Fresh)
	want(t, l.Read(0), two.Value, true, Fresh)
	want(t, l.Read(0), nil, false, Absent)
	three := begin(t, l, false)
	three.End(true)
	want(t, l.Read(0), one.Value, true, Stale)
	want(t, l.Read(0), two.Value, true, Late) // it may have been on its way all the time
	want(t, l.Read(0), three.Value, true, Fresh)
}

func TestAgeCountsFromTheFirstWriteThatReplacedTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 50)
		old := begin(t, l, false)
		old.End(true)
		time.Sleep(time.Hour)
		begin(t, l, false).End(false) // never acknowledged
		begin(t, l, false).End(true)
		for range keptAcks - 2 {
			time.Sleep(time.Second)
			begin(t, l, false).End(true)
		}
		r := l.Read(0)
		time.Sleep(time.Minute) // the read takes its time, which does not count
		if got, want := r.Age(old.Value), (keptAcks-2)*time.Second; got != want {
			t.Errorf("out of date for %v, want %v", got, want)
		}
		for range keptAcks {
			begin(t, l, false).End(true)
		}
		if got := l.Read(0).Age(old.Value); got != 0 {
			t.Errorf("out of date for %v, though that is forgotten", got)
		}
	})
}

func TestAKeyHasOneWriteAtATime(t *testing.T) {
	l := New(1, 50)
	w := begin(t, l, false)
	if _, ok := l.Begin(0, true); ok {
		t.Error("two writes at a time")
	}
	w.End(false)
	begin(t, l, true)
}

func TestDamagedValuesAreWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Uint64Range(1, 1<<40).Draw(t, "version")
		size := rapid.IntRange(0, 300).Draw(t, "size")
		v := compose(Key(7), version, size)
		if got, ok := parse(Key(7), v); !ok || got != version || len(v) < size {
			t.Fatalf("%q is not taken: %d, %v", v, got, ok)
		}
		damaged := bytes.Clone(v)
		damaged[rapid.IntRange(0, len(v)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if got, ok := parse(Key(7), damaged); ok {
			t.Fatalf("%q is taken for version %d", damaged, got)
		}
		if _, ok := parse(Key(7), v[:rapid.IntRange(0, len(v)-1).Draw(t, "cut")]); ok {
			t.Fatal("a value cut short is taken")
		}
		if _, ok := parse(Key(8), v); ok {
			t.Fatal("another key's value is taken")
		}
	})
}
