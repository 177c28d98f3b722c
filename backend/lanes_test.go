package backend

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cacherouter/memproto"
	"cacherouter/reactor"

	"pgregory.net/rapid"
)

// twoLanes is a server whose lanes answer when the test says so. It notes the order in
// which requests on each key are carried out.
type twoLanes struct {
	t     *rapid.T
	l     *loop
	s     *Server
	f     *fake
	peers [NumLanes]*peer
	bufs  [NumLanes][]byte
	sent  [NumLanes]int // requests not yet answered
	next  map[string]int
	done  map[string]int
	calls []*asked
}

// laneKeys share slots by three, so that the rule is tested for strangers too.
var laneKeys = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}

func laneHash(key string) uint64 { return uint64(key[0]%3)<<24 | uint64(key[0]) }

// send sends a request on some keys, of a certain size, where the rule wants it.
func (x *twoLanes) send(keys []string, size int) {
	var request string
	for _, k := range keys {
		request += fmt.Sprintf(" %s:%d", k, x.next[k])
	}
	request = "gets" + request + strings.Repeat(" pad", size/4) + "\r\n"
	a := &asked{t: x.l.t, events: make(chan string, 4)}
	a.Owner, a.Verb, a.Repeatable = a, memproto.Gets, true
	var lane Lane
	sent := true
	x.l.do(func() {
		lane = x.s.LaneOf(laneHash(keys[0]), len(request))
		for _, k := range keys[1:] {
			sent = sent && x.s.LaneOf(laneHash(k), len(request)) == lane
		}
		if !sent {
			return
		}
		for _, k := range keys {
			x.s.Claim(&a.Call, lane, laneHash(k))
		}
		x.s.Send(&a.Call, lane, []byte(request))
		x.disjoint()
	})
	if !sent {
		return // a router asks such keys apart
	}
	for _, k := range keys {
		x.next[k]++
	}
	x.sent[lane]++
	x.calls = append(x.calls, a)
	if x.peers[lane] == nil {
		x.peers[lane] = x.f.accept()
	}
}

// disjoint checks that no slot has calls on both lanes. It runs on the loop.
func (x *twoLanes) disjoint() {
	for slot := range numSlots {
		if calls := x.s.slots[slot].calls; calls[Small] > 0 && calls[Bulk] > 0 {
			x.t.Errorf("slot %d has calls on both lanes", slot)
		}
	}
}

// answer carries out the next request on a lane.
func (x *twoLanes) answer(lane Lane) {
	if x.sent[lane] == 0 {
		return
	}
	x.sent[lane]--
	for bytes.IndexByte(x.bufs[lane], '\n') < 0 {
		chunk := make([]byte, 4096)
		n, err := x.peers[lane].nc.Read(chunk)
		if err != nil {
			x.t.Fatal(err)
		}
		x.bufs[lane] = append(x.bufs[lane], chunk[:n]...)
	}
	line, rest, _ := bytes.Cut(x.bufs[lane], []byte("\r\n"))
	x.bufs[lane] = rest
	for _, word := range strings.Fields(string(line))[1:] {
		key, number, ok := strings.Cut(word, ":")
		if !ok {
			continue
		}
		if want := fmt.Sprint(x.done[key]); number != want {
			x.t.Fatalf("request %s on %s is carried out, %s is due", number, key, want)
		}
		x.done[key]++
	}
	before := 0
	x.l.do(func() { before = x.s.lanes[lane].waiting.n })
	x.peers[lane].send("END\r\n")
	x.l.until("the reply is in", func() bool {
		x.disjoint()
		return x.s.lanes[lane].waiting.n < before
	})
}

// Whatever sizes requests have and however long each lane takes, requests on one key are
// carried out in the order they were sent.
func TestLanesKeepOrder(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	rapid.Check(t, func(t *rapid.T) {
		f := listen(l.t, "127.0.0.1:0")
		x := &twoLanes{t: t, l: l, f: f, s: l.start(Config{Address: f.addr(), BulkSize: 100}), next: map[string]int{}, done: map[string]int{}}
		x.peers[Small] = f.accept()
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(t, "steps")
		for _, step := range steps {
			keys := rapid.SliceOfNDistinct(rapid.SampledFrom(laneKeys), 1, 3, rapid.ID).Draw(t, "keys")
			switch {
			case step < 2:
				x.answer(Small)
			case step < 4:
				x.answer(Bulk)
			case step == 4:
				l.do(func() { x.s.Saw(laneHash(keys[0]), 10*len(keys)*len(keys[0])*step) })
			case step < 7:
				x.send(keys, 0)
			default:
				x.send(keys, 200)
			}
		}
		for x.sent[Small]+x.sent[Bulk] > 0 {
			x.answer(Bulk)
			x.answer(Small)
		}
		for _, a := range x.calls {
			a.want("END\r\n")
		}
		l.do(func() {
			if n := x.s.claims(); n != 0 {
				t.Errorf("%d claims are left", n)
			}
			x.s.Close()
		})
		f.ln.Close()
	})
}

// The rule itself, without a server: outstanding calls decide, then size, then what was
// seen of the value.
func TestLaneOf(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s := l.start(Config{Address: f.addr(), BulkSize: 100})
	l.do(func() {
		is := func(hash uint64, size int, want Lane) {
			t.Helper()
			if got := s.LaneOf(hash, size); got != want {
				t.Errorf("a request of %d bytes on %#x goes by lane %d, want %d", size, hash, got, want)
			}
		}
		is(1, 99, Small)
		is(1, 100, Bulk)
		s.Saw(1, 100)
		is(1, 0, Bulk)
		is(2, 0, Small) // another key of the same slot
		s.Saw(2, 5)     // says nothing of key 1
		is(1, 0, Bulk)
		s.Saw(1, 99)
		is(1, 0, Small)
		is(0, 0, Small) // the hash of no big key

		a := newCall(t, "get a\r\n")
		s.Claim(&a.Call, Bulk, 1)
		s.Send(&a.Call, Bulk, []byte("get a\r\n"))
		is(1, 0, Bulk)
		is(2, 0, Bulk)
		is(1<<24, 0, Small)
	})
}

// A very hot key may have more calls outstanding than fit into 16 bits.
func TestManyCallsOnOneKey(t *testing.T) {
	const many = 1 << 16
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s := l.start(Config{Address: f.addr(), BulkSize: 100})
	calls := make([]Call, many)
	o := &asked{t: t, events: make(chan string, 2*many)}
	request := []byte("get a\r\n")
	l.do(func() {
		for i := range calls {
			calls[i] = Call{Owner: o, Verb: memproto.Get}
			s.Claim(&calls[i], Small, 7)
			s.Send(&calls[i], Small, request)
			if lane := s.LaneOf(7, 1000); lane != Small {
				t.Fatalf("with %d calls outstanding the next goes elsewhere", i+1)
			}
		}
	})
	p := f.accept()
	p.expect(strings.Repeat("get a\r\n", many))
	p.send(strings.Repeat("END\r\n", many))
	for range many {
		o.want("END\r\n")
	}
	l.do(func() {
		if lane := s.LaneOf(7, 1000); lane != Bulk {
			t.Error("calls that are over still count")
		}
	})
}

// A call that has been used once is as good as new after Reset.
func TestCallReset(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s := l.start(Config{Address: f.addr()})
	p := f.accept()
	l.opened(s)
	a := newCall(t, "get a b\r\n")
	l.do(func() {
		s.Claim(&a.Call, Small, 5<<24)
		s.Send(&a.Call, Small, []byte("get a b\r\n"))
	})
	p.reset()
	a.want("restarted")
	p = f.accept()
	p.send("END\r\n")
	a.want("END\r\n")
	l.do(func() {
		a.Reset()
		a.Owner, a.Verb, a.Repeatable = a, memproto.Get, true
		s.Claim(&a.Call, Small, 9<<24)
		s.Send(&a.Call, Small, []byte("get c\r\n"))
		if s.slots[9].calls[Small] != 1 || s.slots[5].calls[Small] != 0 {
			t.Error("the keys of the earlier use are counted")
		}
	})
	p.expect("get a b\r\nget c\r\n")
	p.reset()
	a.want("restarted") // once more, as it is another call
	p = f.accept()
	p.expect("get c\r\n")
	p.send("END\r\n")
	a.want("END\r\n")
}

func TestRawBufferIsKeptWhileSmall(t *testing.T) {
	a := newCall(t, "get a\r\n")
	a.raw = make([]byte, 10, keepRaw)
	a.Reset()
	if cap(a.raw) != keepRaw || len(a.raw) != 0 {
		t.Errorf("a buffer of %d bytes is kept as %d", keepRaw, cap(a.raw))
	}
	a.raw = make([]byte, 10, keepRaw+1)
	a.Reset()
	if a.raw != nil {
		t.Error("a large buffer is kept")
	}
}

// claims counts the keys that keep requests on their lanes.
func (s *Server) claims() (n int) {
	for i := range s.slots {
		n += int(s.slots[i].calls[Small] + s.slots[i].calls[Bulk])
	}
	return n
}

// However a call ends, its keys are free again.
func TestClaimsEnd(t *testing.T) {
	l := startLoop(t, reactor.Config{})
	f := listen(t, "127.0.0.1:0")
	s := l.start(Config{Address: f.addr(), MaxQueue: 40})
	p := f.accept()
	ask := func(requests ...string) (all []*asked) {
		l.do(func() {
			for _, r := range requests {
				a := newCall(t, r)
				s.Claim(&a.Call, Small, 1<<24)
				s.Claim(&a.Call, Small, 2<<24)
				s.Send(&a.Call, Small, []byte(r))
				all = append(all, a)
			}
		})
		return all
	}
	free := func(when string) {
		t.Helper()
		l.do(func() {
			if n := s.claims(); n != 0 {
				t.Errorf("%d claims are left %s", n, when)
			}
		})
	}
	busy := ask("get a\r\n", "get "+strings.Repeat("k", 50)+"\r\n")
	busy[1].want("failed: busy")
	l.do(func() {
		if n := s.claims(); n != 2 {
			t.Errorf("%d claims with one call outstanding", n)
		}
	})
	p.expect("get a\r\n")
	p.send("END\r\n")
	busy[0].want("END\r\n")
	free("after an answer and a refusal")

	lost := ask("get a\r\n", "incr n 1\r\n")
	p.expect("get a\r\nincr n 1\r\n")
	p.reset()
	lost[1].want("failed: connection lost")
	p = f.accept()
	p.expect("get a\r\n")
	p.send("END\r\n")
	lost[0].want("restarted", "END\r\n")
	free("after a retry and a loss")

	l.do(func() { s.cfg.Timeout = 0 })
	late := ask("get a\r\n", "incr n 1\r\n")
	l.do(s.lanes[Small].expire) // the timer is set for a call that had longer
	late[0].want("failed: timeout")
	late[1].want("failed: timeout")
	free("after a timeout")

	l.do(func() { s.cfg.Timeout = patience })
	p = f.accept()
	closed := ask("get a\r\n")
	p.expect("get a\r\n")
	l.do(s.Close)
	closed[0].want("failed: connection lost")
	ask("get a\r\n")[0].want("failed: connection lost")
	free("after the end")
}
