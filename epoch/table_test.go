package epoch

import (
	"math"
	"testing"
)

// desk is a table of which one key is looked at.
type desk struct {
	t *testing.T
	*Table
	seen map[uint64]bool
}

const key = 1

func newDesk(t *testing.T) *desk { return &desk{t, New(5), map[uint64]bool{}} }

// moved takes the epoch, which must be one that was not there before.
func (d *desk) moved() uint64 {
	d.t.Helper()
	now := d.Now(key)
	if now == 0 || d.seen[now] {
		d.t.Fatalf("epoch %#x is 0 or was there before", now)
	}
	d.seen[now] = true
	return now
}

func (d *desk) writing() {
	d.t.Helper()
	if now := d.Now(key); now != 0 {
		d.t.Fatalf("epoch %#x during a write", now)
	}
}

func (d *desk) fill(token uint64, want bool) {
	d.t.Helper()
	if got := d.FillBegan(key, token); got != want {
		d.t.Fatalf("a fill with token %#x: %v", token, got)
	}
}

func (d *desk) fills(want bool) {
	d.t.Helper()
	if d.Fills(key) != want || d.FillsAny() != want {
		d.t.Fatalf("fills are on their way: %v, any: %v, want %v", d.Fills(key), d.FillsAny(), want)
	}
}

func TestWritesChangeTheEpoch(t *testing.T) {
	d := newDesk(t)
	if len(d.words) != 8 {
		t.Errorf("%d words", len(d.words))
	}
	d.moved()
	for range 100_000 { // as many may be on their way at once
		d.Began(key)
	}
	d.writing()
	for range 100_000 {
		d.writing()
		d.Ended(key)
	}
	d.moved()
	d.Passed(key)
	d.moved()
}

func TestFillsKeepTheEpoch(t *testing.T) {
	d := newDesk(t)
	token := d.moved()
	d.fill(token, true)
	d.fills(true)
	if now := d.Now(key); now != token {
		t.Errorf("a fill changes the epoch from %#x to %#x", token, now)
	}
	d.fill(token, true)
	d.FillEnded(key)
	d.fills(true)
	d.FillEnded(key)
	d.fills(false)
}

func TestWritesRefuseFills(t *testing.T) {
	d := newDesk(t)
	token := d.moved()
	d.fill(token, true)
	d.Began(key)
	d.fill(token, false)
	d.fill(d.Now(key), false) // is 0
	d.fills(true)
	d.FillEnded(key)
	d.fills(false)
	d.Ended(key)
	d.fill(token, false)
	d.fill(d.moved(), true)
}

func TestFillsAreBounded(t *testing.T) {
	d := newDesk(t)
	token := d.moved()
	for range 255 {
		d.fill(token, true)
	}
	d.fill(token, false)
	if d.Now(key) != token {
		t.Error("many fills change the epoch")
	}
	d.FillEnded(key)
	d.fill(token, true)
	for range 255 {
		d.fills(true)
		d.FillEnded(key)
	}
	d.fills(false)
}

// After 2^32 writes the numbers begin again, and nothing spills into what is beside.
func TestEpochsWrapAround(t *testing.T) {
	d := newDesk(t)
	d.word(key).Store(math.MaxUint32 << 32)
	token := d.moved()
	d.fill(token, true)
	d.Began(key)
	d.Ended(key)
	d.writing() // as it looks for one epoch
	d.fill(0, false)
	d.Passed(key)
	d.fills(true)
	d.FillEnded(key)
	d.fills(false)
	d.fill(d.moved(), true)
}

func TestWritesOfAllKeys(t *testing.T) {
	d := newDesk(t)
	token := d.moved()
	d.fill(token, true)
	d.BeganAll()
	d.writing()
	d.BeganAll()
	d.EndedAll()
	d.writing()
	d.fill(token, false)
	d.Began(key)
	d.EndedAll()
	d.writing()
	d.FillEnded(key)
	d.fills(false)
	d.Ended(key)
	d.fill(token, false)
	d.fill(d.moved(), true)
	d.FillEnded(key)
	for hash := range uint64(100) {
		if d.Now(hash) <= oneEnded {
			t.Errorf("key %d has the epoch %#x still", hash, d.Now(hash))
		}
	}
}

func BenchmarkNow(b *testing.B) {
	t, i := New(0), uint64(0)
	for b.Loop() {
		i++
		t.Now(i)
	}
}

func BenchmarkWrite(b *testing.B) {
	t, i := New(0), uint64(0)
	for b.Loop() {
		i++
		t.Began(i)
		t.Ended(i)
	}
}

func BenchmarkFill(b *testing.B) {
	t, i := New(0), uint64(0)
	for b.Loop() {
		i++
		if t.FillBegan(i, t.Now(i)) {
			t.FillEnded(i)
		}
	}
}

func BenchmarkAll(b *testing.B) {
	t := New(0)
	for b.Loop() {
		t.BeganAll()
		t.EndedAll()
	}
}

// A write was alone if nothing else of its key was on its way while it was.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile func(d *desk)
		want              bool
	}{
		"nothing else":           {want: true},
		"a write that had ended": {before: func(d *desk) { d.Began(key); d.Ended(key) }, want: true},
		"a fill":                 {before: func(d *desk) { d.FillBegan(key, d.Now(key)) }, meanwhile: func(d *desk) { d.FillEnded(key) }, want: true},
		"an earlier one":         {before: func(d *desk) { d.Began(key) }},
		"one that ends":          {before: func(d *desk) { d.Began(key) }, meanwhile: func(d *desk) { d.Ended(key) }},
		"a later one":            {meanwhile: func(d *desk) { d.Began(key) }},
		"one in between":         {meanwhile: func(d *desk) { d.Began(key); d.Ended(key) }},
		"somebody else's":        {meanwhile: func(d *desk) { d.Passed(key) }},
		"a flush":                {meanwhile: func(d *desk) { d.BeganAll() }},
		"a flush in between":     {meanwhile: func(d *desk) { d.BeganAll(); d.EndedAll() }},
		"a flush from before":    {before: func(d *desk) { d.BeganAll() }},
		"the end of a flush":     {before: func(d *desk) { d.BeganAll() }, meanwhile: func(d *desk) { d.EndedAll() }},
		"one as epochs wrap": {
			before:    func(d *desk) { d.word(key).Store(math.MaxUint32 << 32) },
			meanwhile: func(d *desk) { d.Began(key); d.Ended(key) },
		},
	} {
		d := newDesk(t)
		if c.before != nil {
			c.before(d)
		}
		mark := d.Began(key)
		if c.meanwhile != nil {
			c.meanwhile(d)
		}
		if got := d.Alone(key, mark); got != c.want {
			t.Errorf("beside %s a write is alone: %v", name, got)
		}
	}
}
