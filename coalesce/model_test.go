package coalesce

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is two routers' loops in front of one server with two registers, and clients
// that read and write them. A version is the number of writes a register has seen.
//
// What must hold is that the registers are linearizable: each operation takes effect
// when the server executes it, so a read must not return a version older than one that
// an operation had returned before the read began. And the operations of one client on
// one register must look as if executed in order, unless a connection broke.
type world struct {
	pick    func(n int) int // a number below n
	cfg     worldConfig
	now     time.Duration
	loops   [2]*worldLoop
	version [2]int // of each register
	floor   [2]int // newest version that some operation has returned
	epoch   [2]uint64
	writing [2]int // writes on their way
	ops     []*operation
	err     error
}

// worldConfig says how the table is used; some ways are wrong on purpose.
type worldConfig struct {
	mode        Mode
	foreign     bool // writes may go past the routers
	joinAlways  bool // wrong: epochs never change
	forgetSeal  bool // wrong: writes do not seal
	forgetTurns bool // wrong: the table is not told when requests leave
	lateFlush   bool // wrong: the flight that a write flushes is sent after the write
}

type worldFlight = Flight[int]

type worldLoop struct {
	table  *Table[int]
	buffer []*message // written when the turn ends
	wire   []*message
	done   []*message // executed, the reply is on its way
	breaks int        // how often the connection broke
}

// message is a request on its way to the server, and its reply.
type message struct {
	flight  *worldFlight // of a read
	op      *operation   // a write, or a read without a flight
	key     int
	want    Want
	version int // as executed
}

type operation struct {
	id, client, key int
	write           bool
	want            Want
	floor           int // when it began
	breaks          int // of its loop when it began
	answers         int
	version         int // 0 if it failed
	whole           bool
}

// Both registers share a hash, to see that keys are told apart.
var worldKeys = [2]string{"alpha", "beta"}

const worldHash = 42

func newWorld(t testing.TB, c worldConfig, pick func(int) int) *world {
	w := &world{pick: pick, cfg: c, version: [2]int{1, 1}, epoch: [2]uint64{1, 1}}
	for i := range w.loops {
		table, err := New[int](Config{Mode: c.mode, MaxFlights: 1 + pick(2), MaxTries: 1 + pick(3)})
		if err != nil {
			t.Fatal(err)
		}
		w.loops[i] = &worldLoop{table: table}
	}
	return w
}

func (w *world) loopOf(client int) *worldLoop { return w.loops[client%len(w.loops)] }

func (w *world) begin(write bool) *operation {
	op := &operation{id: len(w.ops), client: w.pick(6), key: w.pick(2), write: write}
	op.want, op.floor, op.breaks = Want(w.pick(2)), w.floor[op.key], w.loopOf(op.client).breaks
	w.ops = append(w.ops, op)
	return op
}

func (w *world) read() {
	op := w.begin(false)
	l := w.loopOf(op.client)
	own, epoch := new(worldFlight), uint64(0)
	own.Ask(worldHash, []byte(worldKeys[op.key]), op.want, op.id, w.now+10*time.Millisecond)
	if w.writing[op.key] == 0 {
		epoch = w.epoch[op.key]
	}
	if w.cfg.joinAlways {
		epoch = 1
	}
	switch f, role := l.table.Join(own, epoch, w.now); role {
	case Leader:
		w.send(l, f)
	case Alone:
		l.buffer = append(l.buffer, &message{op: op, key: op.key, want: op.want})
	}
}

func (w *world) send(l *worldLoop, f *worldFlight) {
	if f == nil {
		return
	}
	key := 0
	if string(f.Key()) == worldKeys[1] {
		key = 1
	}
	l.buffer = append(l.buffer, &message{flight: f, key: key, want: f.Want()})
}

func (w *world) write() {
	op := w.begin(true)
	l := w.loopOf(op.client)
	var flushed *worldFlight
	if !w.cfg.forgetSeal {
		flushed = l.table.Seal(worldHash, []byte(worldKeys[op.key]), w.now)
	}
	m := &message{op: op, key: op.key}
	w.writing[op.key]++
	if w.cfg.lateFlush {
		l.buffer = append(l.buffer, m)
		w.send(l, flushed)
		return
	}
	w.send(l, flushed)
	l.buffer = append(l.buffer, m)
}

// sealAll is a flush_all that the server refuses.
func (w *world) sealAll(l *worldLoop) {
	for _, f := range l.table.SealAll(nil, w.now) {
		w.send(l, f)
	}
}

func (w *world) foreignWrite() {
	if key := w.pick(2); w.cfg.foreign {
		w.version[key]++
		w.floor[key] = w.version[key]
	}
}

func (w *world) endTurn(l *worldLoop) {
	if !w.cfg.forgetTurns {
		l.table.Sent()
	}
	l.wire = append(l.wire, l.buffer...)
	l.buffer = nil
}

func (w *world) execute(l *worldLoop) {
	if len(l.wire) == 0 {
		return
	}
	m := l.wire[0]
	l.wire = l.wire[1:]
	if m.op != nil && m.op.write {
		w.version[m.key]++
	}
	m.version = w.version[m.key]
	l.done = append(l.done, m)
}

// deliver brings a reply to the loop, now and then an error that is final.
func (w *world) deliver(l *worldLoop) {
	if len(l.done) == 0 {
		return
	}
	m := l.done[0]
	l.done = l.done[1:]
	if m.op != nil {
		w.answer(m.op, m.version, m.want)
		return
	}
	if w.pick(16) == 0 {
		m.version = 0
	}
	var crew Crew[int]
	next := l.table.Landed(m.flight, &crew, w.now)
	w.send(l, next)
	w.empty(l, m, &crew)
}

// empty answers all gets of a flight that is over.
func (w *world) empty(l *worldLoop, m *message, crew *Crew[int]) {
	for id, ok := l.table.Pop(crew); ok; id, ok = l.table.Pop(crew) {
		w.answer(w.ops[id], m.version, m.want)
	}
}

// breakOff loses the connection: some of what is on the wire is still executed, nothing
// of it is answered.
func (w *world) breakOff(l *worldLoop) {
	for range w.pick(len(l.wire) + 1) {
		w.execute(l)
	}
	lost := append(append(l.done, l.wire...), l.buffer...)
	l.done, l.wire, l.buffer = nil, nil, nil
	l.breaks++
	for _, m := range lost {
		if m.op != nil {
			w.answer(m.op, 0, m.want)
			continue
		}
		var crew Crew[int]
		next := l.table.Failed(m.flight, &crew, w.now)
		w.send(l, next)
		m.version = 0
		w.empty(l, m, &crew)
	}
}

func (w *world) expire(l *worldLoop) {
	w.now += time.Duration(w.pick(8)) * time.Millisecond
	for _, id := range l.table.Expire(nil, w.now) {
		w.answer(w.ops[id], 0, w.ops[id].want)
	}
}

// answer ends an operation; version 0 is an error.
func (w *world) answer(op *operation, version int, had Want) {
	op.answers++
	op.version = version
	op.whole = op.breaks == w.loopOf(op.client).breaks
	if op.write {
		w.writing[op.key]--
		w.epoch[op.key]++
	}
	switch {
	case op.answers > 1:
		w.fail("operation %d is answered %d times", op.id, op.answers)
	case version == 0:
		return
	case !op.write && op.want&^had != 0:
		w.fail("read %d wants %b and gets %b", op.id, op.want, had)
	case version < op.floor:
		w.fail("operation %d returns version %d; before it began, %d had been returned", op.id, version, op.floor)
	}
	w.floor[op.key] = max(w.floor[op.key], version)
	w.inOrder(op)
}

// inOrder compares with what the same client asked before and after.
func (w *world) inOrder(op *operation) {
	for _, other := range w.ops {
		if other.client != op.client || other.key != op.key || other == op {
			continue
		}
		if first, then := other, op; first.id < then.id {
			w.ordered(first, then)
		} else {
			w.ordered(then, first)
		}
	}
}

func (w *world) ordered(first, then *operation) {
	if first.version == 0 || then.version == 0 || !first.whole || !then.whole {
		return
	}
	if first.version > then.version || first.version == then.version && then.write {
		w.fail("client %d gets version %d from %d and %d from %d", first.client, first.version, first.id, then.version, then.id)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) step() {
	l := w.loops[w.pick(len(w.loops))]
	switch w.pick(13) {
	case 0, 1, 2, 3:
		w.read()
	case 4:
		w.write()
	case 5:
		w.foreignWrite()
	case 6:
		w.endTurn(l)
	case 7, 8:
		w.execute(l)
	case 9, 10:
		w.deliver(l)
	case 11:
		w.expire(l)
	case 12:
		switch w.pick(6) {
		case 0:
			w.breakOff(l)
		case 1:
			w.sealAll(l)
		}
	}
}

// run takes some steps, then lets everything come to its end, and returns what was
// wrong.
func (w *world) run(steps int) error {
	for range steps {
		if w.step(); w.err != nil {
			return w.err
		}
	}
	for _, l := range w.loops {
		for len(l.buffer)+len(l.wire)+len(l.done) > 0 {
			w.endTurn(l)
			w.execute(l)
			w.deliver(l)
		}
		if n := l.table.Len(); n != 0 {
			w.fail("%d flights are left", n)
		}
	}
	for _, op := range w.ops {
		if op.answers != 1 {
			w.fail("operation %d is answered %d times", op.id, op.answers)
		}
	}
	return w.err
}

func TestReadsAreLinearizable(t *testing.T) {
	for name, c := range map[string]worldConfig{
		"strict":   {foreign: true},
		"inflight": {mode: Inflight},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				number := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
				if err := newWorld(t, c, number).run(rapid.IntRange(10, 150).Draw(rt, "steps")); err != nil {
					rt.Fatal(err)
				}
			})
			for seed := range uint64(3000) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				if err := newWorld(t, c, rnd.IntN).run(200); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// The model must see what goes wrong when the table is used wrongly.
func TestModelSeesMistakes(t *testing.T) {
	for name, c := range map[string]worldConfig{
		"joins what has left":           {mode: Inflight, joinAlways: true},
		"inflight with other routers":   {mode: Inflight, foreign: true},
		"writes do not seal":            {forgetSeal: true},
		"flushes after leave the table": {forgetTurns: true},
		"flushed after the write":       {lateFlush: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				if err := newWorld(t, c, rnd.IntN).run(200); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("the model saw nothing wrong")
		})
	}
}
