package coalesce

import "bytes"

// places is a hash table of flights by key, with open addressing. It grows and never
// shrinks. Beside each flight is its hash, so that a look-up touches one cache line, and
// no flight of another key.
type places[W any] struct {
	at    []place[W] // a power of two, at most half of them taken
	shift uint
	n     int
}

type place[W any] struct {
	hash   uint64
	flight *Flight[W] // nil: the place is free
}

const minPlaces = 256

func newPlaces[W any](n int) places[W] {
	p := places[W]{shift: 64}
	for size := 1; ; size *= 2 {
		if size >= n {
			p.at = make([]place[W], size)
			return p
		}
		p.shift--
	}
}

// start returns where the search for a hash begins. The hash may be any that callers place
// keys by, and some of those have few bits, or all of them low; the multiplication spreads
// them.
func (p *places[W]) start(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> (p.shift & 63)) }

func (p *places[W]) after(i int) int { return (i + 1) & (len(p.at) - 1) }

// find returns the flight of a key and its place or, where there is none, the place for one.
func (p *places[W]) find(hash uint64, key []byte) (*Flight[W], int) {
	for i := p.start(hash); ; i = p.after(i) {
		x := &p.at[i]
		if x.flight == nil || x.hash == hash && bytes.Equal(x.flight.key, key) {
			return x.flight, i
		}
	}
}

// insert adds a flight whose key has none, in the place that find has returned for it.
func (p *places[W]) insert(i int, f *Flight[W]) {
	if 2*p.n >= len(p.at) {
		p.grow()
		_, i = p.find(f.hash, f.key)
	}
	p.at[i] = place[W]{f.hash, f}
	f.attached = true
	p.n++
}

// placeOf returns where a flight is that was inserted.
func (p *places[W]) placeOf(f *Flight[W]) int {
	i := p.start(f.hash)
	for p.at[i].flight != f {
		i = p.after(i)
	}
	return i
}

// replace puts a flight in the place of one with the same key.
func (p *places[W]) replace(old, f *Flight[W]) {
	p.at[p.placeOf(old)].flight = f
	old.attached, f.attached = false, true
}

// remove takes a flight out. Those behind it move up, so that no search ends too early.
func (p *places[W]) remove(f *Flight[W]) {
	gap := p.placeOf(f)
	for i := p.after(gap); p.at[i].flight != nil; i = p.after(i) {
		// It may move to the gap unless its search begins behind that.
		mask := len(p.at) - 1
		if (i-p.start(p.at[i].hash))&mask >= (i-gap)&mask {
			p.at[gap] = p.at[i]
			gap = i
		}
	}
	p.at[gap] = place[W]{}
	f.attached = false
	p.n--
}

func (p *places[W]) clear() {
	clear(p.at)
	p.n = 0
}

func (p *places[W]) grow() {
	old := p.at
	*p = newPlaces[W](2 * len(old))
	for _, x := range old {
		if x.flight != nil {
			_, i := p.find(x.hash, x.flight.key)
			p.insert(i, x.flight)
		}
	}
}
