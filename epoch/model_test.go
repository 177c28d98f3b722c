package epoch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// world is a router, a key's home and one other server with a copy, as far as the key
// goes. Messages to the servers are executed in any order, as on several connections.
// Versions count writes; 0 is no value. A flush of all keys is a write of nothing: it
// makes a version as well, but leaves no copy.
type world struct {
	Table *Table
	rules rules
	pick  func(n int) int

	home, copy int
	writes     []*write
	fills      []*fill
	reads      []*read
	floor      int // the newest version that anybody was told of
	err        error
}

// rules are what a router might forget.
type rules struct {
	anyToken, keepFills, noWait, readAlways bool
}

type stage int

const (
	sent     stage = iota // to the home, or a copy
	executed              // there, not yet known to the router
	waits                 // for fills
	removing
	removed
)

type write struct {
	stage   stage
	all     bool
	version int
}

// fill reads from the home, then adds the copy.
type fill struct {
	stage          stage
	adding, began  bool
	token          uint64
	version, floor int
}

// read is a get of the copy.
type read struct {
	done           bool
	version, floor int
}

func (w *world) tell(version, floor int, who string) {
	if version != 0 && version < floor {
		w.err = fmt.Errorf("%s sees version %d; before it began somebody was told of %d", who, version, floor)
	}
	w.floor = max(w.floor, version)
}

func (w *world) beginWrite() {
	m := &write{all: w.pick(4) == 0}
	if m.all {
		w.Table.BeganAll()
	} else {
		w.Table.Began(key)
	}
	w.writes = append(w.writes, m)
}

func (w *world) stepWrite(i int) {
	switch m := w.writes[i]; m.stage {
	case sent:
		w.home++
		m.version, m.stage = w.home, executed
	case executed, waits:
		m.stage = removing
		if w.Table.Fills(key) && !w.rules.noWait {
			m.stage = waits
		}
	case removing:
		w.copy, m.stage = 0, removed
	case removed:
		if m.all {
			w.Table.EndedAll()
		} else {
			w.Table.Ended(key)
		}
		w.floor = max(w.floor, m.version)
		w.writes = append(w.writes[:i], w.writes[i+1:]...)
	}
}

func (w *world) beginFill() {
	w.fills = append(w.fills, &fill{token: w.Table.Now(key), floor: w.floor})
}

func (w *world) stepFill(i int) {
	f := w.fills[i]
	switch {
	case !f.adding && f.stage == sent:
		f.version, f.stage = w.home, executed
	case !f.adding:
		w.tell(f.version, f.floor, "a read of the home")
		f.adding, f.stage = true, sent
		if w.rules.anyToken {
			f.token = w.Table.Now(key)
		}
		f.began = w.Table.FillBegan(key, f.token)
		if !f.began && !w.rules.keepFills {
			w.fills = append(w.fills[:i], w.fills[i+1:]...)
		}
	case f.stage == sent:
		if f.stage = executed; w.copy == 0 {
			w.copy = f.version
		}
	default:
		if f.began {
			w.Table.FillEnded(key)
		}
		w.fills = append(w.fills[:i], w.fills[i+1:]...)
	}
}

// beginRead sends a get to the copy, unless a write is on its way.
func (w *world) beginRead() {
	if w.Table.Now(key) != 0 || w.rules.readAlways {
		w.reads = append(w.reads, &read{floor: w.floor})
	}
}

func (w *world) stepRead(i int) {
	r := w.reads[i]
	if !r.done {
		r.done, r.version = true, w.copy
		return
	}
	w.tell(r.version, r.floor, "a read of the copy")
	w.reads = append(w.reads[:i], w.reads[i+1:]...)
}

func (w *world) step() {
	begin := []func(){w.beginWrite, w.beginFill, w.beginRead}
	lens := []int{len(w.writes), len(w.fills), len(w.reads)}
	what := w.pick(3)
	if n := lens[what]; n == 0 || n < 3 && w.pick(4) == 0 {
		begin[what]()
		return
	}
	[]func(int){w.stepWrite, w.stepFill, w.stepRead}[what](w.pick(lens[what]))
}

func run(r rules, steps int, pick func(int) int) error {
	w := &world{Table: New(1), rules: r, pick: pick, home: 1, floor: 1}
	for range steps {
		if w.step(); w.err != nil {
			return w.err
		}
	}
	for len(w.fills) > 0 { // what was begun comes to its end
		w.stepFill(0)
	}
	for len(w.writes) > 0 {
		w.stepWrite(0)
	}
	if w.Table.Fills(key) || w.Table.Now(key) == 0 {
		return fmt.Errorf("something is on its way still: %#x", w.Table.words[0].Load())
	}
	return w.err
}

func runSeed(r rules, seed uint64) error {
	return run(r, 300, rand.New(rand.NewPCG(seed, 0)).IntN)
}

func TestCopiesAreNotOlderThanWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		if err := run(rules{}, rapid.IntRange(10, 200).Draw(rt, "steps"), pick); err != nil {
			rt.Fatal(err)
		}
	})
	for seed := range uint64(5000) {
		if err := runSeed(rules{}, seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The model must see what goes wrong when the table is used wrongly.
func TestModelSeesMistakes(t *testing.T) {
	for name, r := range map[string]rules{
		"the token is taken after the answer":  {anyToken: true},
		"a refused fill is sent all the same":  {keepFills: true},
		"a write does not wait for fills":      {noWait: true},
		"copies are read while a write is out": {readAlways: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5000) {
				if err := runSeed(r, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("the model saw nothing wrong")
		})
	}
}
