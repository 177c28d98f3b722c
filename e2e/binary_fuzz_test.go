package e2e

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/memproto"
)

// binarySession writes a client's requests in the binary protocol, each chosen by the next bytes of a source. What
// session leaves out because there is no one right answer is left out here too. Besides:
//
//   - a frame that ends the connection comes last, and nothing behind its key: what is left unread when memcached
//     closes makes the kernel drop its answers;
//   - no unknown opcode has extras or a key, and no touch a value: memcached 1.6.18 loses step there;
//   - no key that text can say in base64 only is longer than 186 bytes, of which that is 248;
//   - no add, replace, append or prepend is too large: a router's drops the old value.
type binarySession struct{ session }

func writeBinary(source []byte) string {
	s := binarySession{session{source: source}}
	for len(s.source) > 0 {
		s.request()
	}
	s.out.WriteString(noopFrame)
	s.out.WriteString(s.last())
	return s.out.String()
}

func (s *binarySession) anyKey() string {
	if s.pick(4) == 0 {
		return s.word("sp ace", "nl\n", "cr\r", "\x00", "a b", " ", strings.Repeat(" ", 186))
	}
	return s.key()
}

func (s *binarySession) op(ops ...memproto.Opcode) memproto.Opcode { return ops[s.pick(len(ops))] }

func (s *binarySession) anyCAS() uint64 {
	if s.pick(6) == 0 {
		return 1<<64 - 1 // no item ever has this one
	}
	return 0
}

func (s *binarySession) seconds() uint32 {
	return []uint32{0, 0, 0, 1000, 2592000, 2592001, 0x7fffffff, 0x80000000, 0xffffffff}[s.pick(9)]
}

func (s *binarySession) add(op memproto.Opcode, cas uint64, extras, key, value string) {
	s.out.WriteString(frame(op, cas, extras, key, value))
}

func (s *binarySession) request() {
	switch s.pick(16) {
	case 0, 1, 2:
		op := s.op(memproto.OpSet, memproto.OpSetQ, memproto.OpAdd, memproto.OpAddQ, memproto.OpReplace, memproto.OpReplaceQ)
		s.add(op, s.anyCAS(), number32(uint32(s.pick(3))*0x7fffffff, s.seconds()), s.anyKey(), s.value())
	case 3, 4, 5, 6:
		s.add(s.op(memproto.OpGet, memproto.OpGetQ, memproto.OpGetK, memproto.OpGetKQ), s.anyCAS(), "", s.anyKey(), "")
	case 7:
		op := s.op(memproto.OpTouch, memproto.OpGetAndTouch, memproto.OpGetAndTouchQ, memproto.OpGetAndTouchK, memproto.OpGetAndTouchKQ)
		s.add(op, s.anyCAS(), number32(s.seconds()), s.anyKey(), "")
	case 8, 9:
		s.add(s.op(memproto.OpAppend, memproto.OpAppendQ, memproto.OpPrepend, memproto.OpPrependQ), s.anyCAS(), "", s.anyKey(), s.value())
	case 10:
		s.add(s.op(memproto.OpDelete, memproto.OpDeleteQ), s.anyCAS(), "", s.anyKey(), "")
	case 11, 12:
		op, delta := s.op(memproto.OpIncrement, memproto.OpIncrementQ), []uint64{1, 7, 1 << 32}[s.pick(3)]
		s.add(op, s.anyCAS(), counter(delta, uint64(s.pick(200)), s.seconds()), s.anyKey(), "")
	case 13: // by 0, as a number must not get shorter
		s.add(s.op(memproto.OpDecrement, memproto.OpDecrementQ), s.anyCAS(), counter(0, 100, s.seconds()), s.anyKey(), "")
	case 14:
		s.other()
	case 15: // many quiet ones and the noop that ends them, as clients ask for several keys
		for range s.pick(30) {
			s.add(memproto.OpGetKQ, 0, "", s.anyKey(), "")
		}
		s.out.WriteString(noopFrame)
	}
}

// other is what has no key.
func (s *binarySession) other() {
	switch s.pick(7) {
	case 0:
		s.out.WriteString(noopFrame)
	case 1:
		s.add(memproto.OpVersion, 0, "", "", "")
	case 2:
		s.add(s.op(memproto.OpFlush, memproto.OpFlushQ), 0, s.word("", number32(0)), "", "")
	case 3:
		s.add(memproto.OpStat, 0, "", s.word("nosuch", "detail", "detail off", "item", "reset"), "")
	case 4:
		s.add(s.op(0x25, 0x77, 0xff), 0, "", "", s.value())
	case 5:
		s.add(memproto.OpSASLMechanisms, 0, "", "", "")
	case 6:
		s.add(s.op(memproto.OpSASLAuth, memproto.OpSASLStep), 0, "", "PLAIN", s.value())
	}
}

// last is a frame that ends the connection, or the beginning of one, or nothing.
func (s *binarySession) last() string {
	op := memproto.Opcode(s.pick(0x25))
	switch s.pick(8) {
	case 0:
		return frame(op, 0, "", strings.Repeat("k", 251), "")
	case 1:
		return lying(frame(op, 0, "", "a", ""), 0)
	case 2:
		return frame(s.op(memproto.OpGet, memproto.OpDeleteQ, memproto.OpVersion, memproto.OpNoop, memproto.OpTouch), 0, "123", "a", "")
	case 3:
		return strings.Repeat("x", 24)
	case 4:
		return frame(s.op(memproto.OpQuit, memproto.OpQuitQ), 0, "", "", "")
	case 5:
		return setFrame("a", "value")[:s.pick(37)]
	}
	return ""
}

// compareBinary is compare in the binary protocol.
func (p pair) compareBinary(t *testing.T, source []byte, seed uint64) {
	t.Helper()
	text := writeBinary(source)
	var replies [2]string
	for i, addr := range []string{p.plain, p.routed} {
		flush(t, addr)
		reply, err := converse(addr, pieces(text, seed))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, addr, err)
		}
		replies[i] = readable(reply)
	}
	if replies[0] != replies[1] {
		at := firstDifference(replies[0], replies[1])
		from := max(0, at-500)
		t.Errorf("seed %d: replies part at byte %d:\nmemcached …%.1000s\nrouter    …%.1000s\nsession:\n%.4000q", seed, at,
			replies[0][min(from, len(replies[0])):], replies[1][min(from, len(replies[1])):], text)
	}
}

// FuzzBinarySession is FuzzSession in the binary protocol.
func FuzzBinarySession(f *testing.F) {
	p := startPair(f)
	for seed := range uint64(8) {
		f.Add(randomSource(seed, 60), seed)
	}
	f.Fuzz(func(t *testing.T, source []byte, seed uint64) {
		if len(source) > 2000 {
			return // long sessions find nothing that short ones do not
		}
		p.compareBinary(t, source, seed)
	})
}

// TestRandomBinarySessions is the bounded form of FuzzBinarySession, the same in every run.
func TestRandomBinarySessions(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("backends=%d", n), func(t *testing.T) {
			t.Parallel()
			p := pair{steadyBackends(t, 1)[0], startRouter(t, steadyBackends(t, n)).addr}
			for seed := range uint64(500) {
				p.compareBinary(t, randomSource(seed+uint64(n)*100000, 300), seed)
				if t.Failed() {
					return // the first one is the one to look at
				}
			}
		})
	}
}
