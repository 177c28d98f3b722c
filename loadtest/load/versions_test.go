//go:build linux

package load

import (
	"testing"

	"pgregory.net/rapid"
)

// register is a cache of one key: writes take effect at any time between their beginning and their end, those that
// fail at any time after their beginning, or never.
type register struct {
	v       *versions
	holds   uint32
	waiting []uint32 // begun, and not in effect
	open    []uint32 // begun, and not ended
	reads   []seen
}

// seen is a read on its way, and what it will return once it has taken effect.
type seen struct {
	mark    mark
	version uint32
	done    bool
}

func (r *register) effect(t *rapid.T) {
	if len(r.waiting) > 0 {
		i := rapid.IntRange(0, len(r.waiting)-1).Draw(t, "takes effect")
		r.holds = r.waiting[i]
		r.waiting = append(r.waiting[:i], r.waiting[i+1:]...)
	}
}

func (r *register) endWrite(t *rapid.T, acknowledged bool) {
	if len(r.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(r.open)-1).Draw(t, "ends")
	version := r.open[i]
	r.open = append(r.open[:i], r.open[i+1:]...)
	for j, w := range r.waiting {
		if w == version && acknowledged { // at the latest now
			r.holds = version
			r.waiting = append(r.waiting[:j], r.waiting[j+1:]...)
			break
		}
	}
	r.v.end(0, version, acknowledged, 0)
}

// A register that is one never shows a stale or wrong value, however writes overlap and fail.
func TestARightRegisterIsNeverBlamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &register{v: newVersions(1)}
		t.Repeat(map[string]func(*rapid.T){
			"begin a write": func(t *rapid.T) {
				version := r.v.begin(0)
				r.waiting, r.open = append(r.waiting, version), append(r.open, version)
			},
			"a write takes effect": r.effect,
			"acknowledge a write":  func(t *rapid.T) { r.endWrite(t, true) },
			"fail a write":         func(t *rapid.T) { r.endWrite(t, false) },
			"begin a read":         func(t *rapid.T) { r.reads = append(r.reads, seen{mark: r.v.read(0)}) },
			"a read takes effect": func(t *rapid.T) {
				for i := range r.reads {
					if !r.reads[i].done {
						r.reads[i].version, r.reads[i].done = r.holds, true
						break
					}
				}
			},
			"end a read": func(t *rapid.T) {
				if len(r.reads) == 0 || !r.reads[0].done {
					return
				}
				x := r.reads[0]
				r.reads = r.reads[1:]
				if got := r.v.judge(0, x.mark, x.version); x.version > 0 && got != fresh && got != late {
					t.Fatalf("write %d, seen by a read that began when the floor was %d, is judged %d", x.version, x.mark.floor, got)
				}
			},
		})
	})
}

// Writes that follow each other leave nothing of the past.
func TestWhatWasReplacedIsStale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVersions(1)
		n := rapid.IntRange(2, 20).Draw(t, "writes")
		fails := rapid.IntRange(0, n-1).Draw(t, "the one that fails") // 0 is none
		for range n {
			version := v.begin(0)
			v.end(0, version, int(version) != fails, 0)
		}
		m := v.read(0)
		for version := 1; version <= n; version++ {
			want := stale
			if version == fails {
				want = late
			} else if version == n {
				want = fresh
			}
			if got := v.judge(0, m, uint32(version)); got != want {
				t.Fatalf("write %d of %d is judged %d, want %d", version, n, got, want)
			}
		}
		if got := v.judge(0, m, uint32(n+1)); got != wrong {
			t.Fatalf("a write that never was is judged %d", got)
		}
	})
}

func TestAMissIsALossOnlyOfWhatShouldBeThere(t *testing.T) {
	f := func(want bool, do func(v *versions) mark) {
		t.Helper()
		v := newVersions(1)
		m := do(v)
		if got := v.lost(0, m, 1000); got != want {
			t.Errorf("lost: %v, want %v", got, want)
		}
	}
	write := func(v *versions, acknowledged bool, dies uint32) { v.end(0, v.begin(0), acknowledged, dies) }
	f(false, func(v *versions) mark { return v.read(0) })
	f(true, func(v *versions) mark { write(v, true, 0); return v.read(0) })
	f(false, func(v *versions) mark { write(v, false, 0); return v.read(0) })
	f(true, func(v *versions) mark { write(v, true, 1100); return v.read(0) })
	f(false, func(v *versions) mark { write(v, true, 1001); return v.read(0) })
	f(false, func(v *versions) mark { write(v, true, 0); m := v.read(0); v.begin(0); return m })
	f(false, func(v *versions) mark { write(v, true, 0); v.begin(0); return v.read(0) })
}
