package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cacherouter/memproto"
)

// frame builds a binary request. Its opaque is made of its own bytes, so that answers which are mixed up show.
func frame(op memproto.Opcode, cas uint64, extras, key, value string) string {
	h := make([]byte, 24)
	h[0], h[1], h[4] = memproto.BinaryMagic, byte(op), byte(len(extras))
	binary.BigEndian.PutUint16(h[2:], uint16(len(key)))
	binary.BigEndian.PutUint32(h[8:], uint32(len(extras)+len(key)+len(value)))
	binary.BigEndian.PutUint32(h[12:], uint32(op)<<24|uint32(len(key))<<16|uint32(len(value)&0xffff))
	binary.BigEndian.PutUint64(h[16:], cas)
	return string(h) + extras + key + value
}

// lying returns a frame whose header says another length of what follows.
func lying(f string, body uint32) string {
	return f[:8] + string(binary.BigEndian.AppendUint32(nil, body)) + f[12:]
}

func number32(numbers ...uint32) string {
	var b []byte
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return string(b)
}

func counter(delta, initial uint64, expiry uint32) string {
	b := binary.BigEndian.AppendUint64(nil, delta)
	b = binary.BigEndian.AppendUint64(b, initial)
	return string(binary.BigEndian.AppendUint32(b, expiry))
}

func setFrame(key, value string) string { return frame(memproto.OpSet, 0, number32(0, 0), key, value) }

func getFrame(key string) string { return frame(memproto.OpGet, 0, "", key, "") }

var noopFrame = frame(memproto.OpNoop, 0, "", "", "")

// answerTo is one answer of the binary protocol.
type answerTo struct {
	op          byte
	code        uint16
	opaque      uint32
	cas         uint64
	extras, key string
	value       string
}

// String shows the answer with its cas masked.
func (a answerTo) String() string {
	return fmt.Sprintf("%02x code %x, opaque %08x, cas %v, %q %q %q", a.op, a.code, a.opaque, a.cas != 0, a.extras, a.key, a.value)
}

// readAnswer reads one answer; the error is io.EOF when there is none.
func readAnswer(r io.Reader) (a answerTo, err error) {
	h := make([]byte, 24)
	if _, err := io.ReadFull(r, h); err != nil {
		return a, err
	}
	body := make([]byte, binary.BigEndian.Uint32(h[8:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return a, fmt.Errorf("cannot read the body of an answer: %w", err)
	}
	extras, key := int(h[4]), int(binary.BigEndian.Uint16(h[2:]))
	if h[0] != 0x81 || h[5] != 0 || extras+key > len(body) {
		return a, fmt.Errorf("%x is no header of an answer", h)
	}
	return answerTo{
		op: h[1], code: binary.BigEndian.Uint16(h[6:]),
		opaque: binary.BigEndian.Uint32(h[12:]), cas: binary.BigEndian.Uint64(h[16:]),
		extras: string(body[:extras]), key: string(body[extras : extras+key]), value: string(body[extras+key:]),
	}, nil
}

// readable shows answers one a line.
func readable(replies string) string {
	var out strings.Builder
	r := strings.NewReader(replies)
	for {
		a, err := readAnswer(r)
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			fmt.Fprintf(&out, "%v", err)
			return out.String()
		}
		fmt.Fprintf(&out, "%.300s\n", a)
	}
}

// call sends one request and returns its answer.
func call(tb testing.TB, conn net.Conn, request string) answerTo {
	tb.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		tb.Fatalf("cannot send: %v", err)
	}
	a, err := readAnswer(conn)
	if err != nil {
		tb.Fatalf("cannot read an answer: %v", err)
	}
	return a
}

// wantCode sends one request whose answer must have a code.
func wantCode(tb testing.TB, conn net.Conn, request string, code memproto.Code) answerTo {
	tb.Helper()
	a := call(tb, conn, request)
	if a.code != uint16(code) {
		tb.Fatalf("%.60q is answered with %s, want code %x", request, a, code)
	}
	return a
}

// binaryConversations are sent to memcached and through the router, and must be answered the same.
func binaryConversations() map[string]string {
	long := strings.Repeat("k", 250)
	big := strings.Repeat("v", 1200<<10)
	op := func(op memproto.Opcode, extras, key, value string) string { return frame(op, 0, extras, key, value) }
	return map[string]string{
		"hit in every form": setFrame("a", "value") + getFrame("a") + op(memproto.OpGetQ, "", "a", "") + op(memproto.OpGetK, "", "a", "") +
			op(memproto.OpGetKQ, "", "a", "") + op(memproto.OpGetAndTouch, number32(9), "a", "") + op(memproto.OpGetAndTouchQ, number32(9), "a", "") +
			op(memproto.OpGetAndTouchK, number32(9), "a", "") + op(memproto.OpGetAndTouchKQ, number32(9), "a", "") + op(memproto.OpTouch, number32(9), "a", ""),
		"miss in every form": getFrame("a") + op(memproto.OpGetQ, "", "a", "") + op(memproto.OpGetK, "", "a", "") +
			op(memproto.OpGetKQ, "", "a", "") + op(memproto.OpGetAndTouch, number32(9), "a", "") + op(memproto.OpGetAndTouchQ, number32(9), "a", "") +
			op(memproto.OpGetAndTouchK, number32(9), "a", "") + op(memproto.OpGetAndTouchKQ, number32(9), "a", "") + op(memproto.OpTouch, number32(9), "a", "") + noopFrame,
		"flags come back":      frame(memproto.OpSet, 0, number32(0xfffffffe, 0), "a", "v") + getFrame("a") + op(memproto.OpTouch, number32(0), "a", ""),
		"date beyond 31 bits":  frame(memproto.OpSet, 0, number32(0, 0xffffffff), "a", "v") + getFrame("a"),
		"date long ago":        frame(memproto.OpSet, 0, number32(0, 2592001), "a", "v") + getFrame("a"),
		"touched to long ago":  setFrame("a", "v") + op(memproto.OpTouch, number32(2592001), "a", "") + getFrame("a"),
		"counter made":         op(memproto.OpIncrement, counter(5, 1<<63, 0), "n", "") + op(memproto.OpIncrement, counter(5, 0, 0), "n", "") + getFrame("n"),
		"counter not made":     op(memproto.OpIncrement, counter(5, 9, 0xffffffff), "n", "") + op(memproto.OpDecrementQ, counter(5, 9, 0xffffffff), "n", "") + getFrame("n"),
		"counter wraps":        setFrame("n", "18446744073709551615") + op(memproto.OpIncrement, counter(2, 0, 0), "n", "") + op(memproto.OpDecrement, counter(2, 0, 0), "n", ""),
		"not a number":         setFrame("n", "many") + op(memproto.OpIncrement, counter(1, 0, 0), "n", "") + op(memproto.OpDecrementQ, counter(1, 0, 0), "n", ""),
		"longest key":          setFrame(long, "v") + op(memproto.OpGetK, "", long, ""),
		"key too long":         noopFrame + getFrame(long+"k"),
		"keys of any bytes":    setFrame("a b", "1") + setFrame("a\nb\r\x00", "2") + op(memproto.OpGetK, "", "a b", "") + op(memproto.OpGetK, "", "a\nb\r\x00", "") + op(memproto.OpDelete, "", "a b", ""),
		"no value":             setFrame("a", "") + getFrame("a") + op(memproto.OpAppend, "", "a", "") + op(memproto.OpGetK, "", "a", ""),
		"append and prepend":   op(memproto.OpAppend, "", "a", "x") + setFrame("a", "m") + op(memproto.OpAppend, "", "a", "r") + op(memproto.OpPrependQ, "", "a", "l") + getFrame("a"),
		"add and replace":      op(memproto.OpReplaceQ, number32(0, 0), "a", "0") + op(memproto.OpAdd, number32(0, 0), "a", "1") + op(memproto.OpAddQ, number32(0, 0), "a", "2") + op(memproto.OpReplace, number32(0, 0), "a", "3") + getFrame("a"),
		"cas on nothing":       frame(memproto.OpAdd, 9, number32(0, 0), "a", "1") + frame(memproto.OpReplaceQ, 9, number32(0, 0), "a", "1") + frame(memproto.OpAppend, 9, "", "a", "1") + frame(memproto.OpDelete, 9, "", "a", "") + frame(memproto.OpIncrement, 9, counter(1, 5, 0), "a", ""),
		"too large":            setFrame("a", "old") + setFrame("a", big) + getFrame("a") + op(memproto.OpSetQ, number32(0, 0), "b", big) + op(memproto.OpAdd, number32(0, 0), "b", big) + op(memproto.OpAppend, "", "c", big) + noopFrame,
		"large":                setFrame("a", big[:900<<10]) + getFrame("a") + op(memproto.OpAppend, "", "a", big[:200<<10]) + op(memproto.OpGetK, "", "a", ""),
		"flush":                setFrame("a", "v") + setFrame("b", "v") + op(memproto.OpFlush, "", "", "") + getFrame("a") + getFrame("b") + op(memproto.OpFlushQ, number32(0), "", "") + noopFrame,
		"version":              op(memproto.OpVersion, "", "", ""),
		"SASL is not on":       op(memproto.OpSASLMechanisms, "", "", "") + op(memproto.OpSASLAuth, "", "PLAIN", "\x00user\x00secret") + op(memproto.OpSASLStep, "", "PLAIN", "x") + noopFrame,
		"unknown":              op(0x77, "", "", "") + op(0xff, "", "", "with a value") + noopFrame,
		"other statistics":     op(memproto.OpStat, "", "nosuch", "") + op(memproto.OpStat, "", "reset", "") + op(memproto.OpStat, "", "detail on", "") + op(memproto.OpStat, "", "detail off", ""),
		"quit":                 noopFrame + op(memproto.OpQuit, "", "", ""),
		"quiet quit":           noopFrame + op(memproto.OpQuitQ, "", "", ""),
		"wrong magic":          noopFrame + "get abc and much more\r\n\r\n",
		"key beyond the body":  noopFrame + lying(getFrame("abc"), 2),
		"body beyond the key":  noopFrame + lying(getFrame("abc"), 5),
		"endless body":         noopFrame + lying(getFrame("abc"), 1<<32-1),
		"extras where none":    noopFrame + op(memproto.OpGet, "1234", "a", ""),
		"no key":               noopFrame + op(memproto.OpDelete, "", "", ""),
		"store without extras": noopFrame + op(memproto.OpSet, "", "a", ""),
		"flush of three bytes": noopFrame + op(memproto.OpFlush, "123", "", ""),
		"noop with a key":      noopFrame + op(memproto.OpNoop, "", "a", ""),
		"SASL without a name":  noopFrame + op(memproto.OpSASLAuth, "", "", ""),
		"half a header":        noopFrame + noopFrame[:23],
		"half a value":         noopFrame + setFrame("a", "value")[:36],
	}
}

func TestBinaryMatchesMemcached(t *testing.T) {
	plain := steadyBackends(t, 1)[0]
	for _, n := range []int{1, 3} {
		r := startRouter(t, steadyBackends(t, n))
		for name, text := range binaryConversations() {
			t.Run(fmt.Sprintf("backends=%d/%s", n, name), func(t *testing.T) {
				var replies [2]string
				for i, addr := range []string{plain, r.addr} {
					flush(t, addr)
					reply, err := converse(addr, pieces(text, uint64(len(name))))
					if err != nil {
						t.Fatalf("%s: %v", addr, err)
					}
					replies[i] = readable(reply)
				}
				if diff := cmp.Diff(replies[0], replies[1]); diff != "" {
					t.Errorf("the router (+) differs from memcached (-):\n%s", diff)
				}
			})
		}
	}
}

// TestBinaryCAS uses tokens that memcached has given.
func TestBinaryCAS(t *testing.T) {
	for _, addr := range []string{steadyBackends(t, 1)[0], startRouter(t, steadyBackends(t, 3)).addr} {
		c := connect(t, addr).conn
		for _, key := range []string{"plain", "with space"} {
			stored := wantCode(t, c, setFrame(key, "1"), memproto.CodeOK).cas
			if got := wantCode(t, c, getFrame(key), memproto.CodeOK).cas; got != stored || got == 0 {
				t.Fatalf("cas %d after a set, %d in a get", stored, got)
			}
			if got := wantCode(t, c, frame(memproto.OpTouch, 0, number32(60), key, ""), memproto.CodeOK).cas; got != stored {
				t.Fatalf("a touch shows cas %d, want %d", got, stored)
			}
			added := wantCode(t, c, frame(memproto.OpAdd, stored, number32(0, 0), key, "2"), memproto.CodeOK).cas
			wantCode(t, c, frame(memproto.OpReplace, stored, number32(0, 0), key, "3"), memproto.CodeExists)
			appended := wantCode(t, c, frame(memproto.OpAppend, added, "", key, "4"), memproto.CodeOK).cas
			wantCode(t, c, frame(memproto.OpPrepend, added, "", key, "0"), memproto.CodeExists)
			counted := wantCode(t, c, frame(memproto.OpIncrement, appended, counter(6, 0, 0), key, ""), memproto.CodeOK)
			if counted.value != "\x00\x00\x00\x00\x00\x00\x00\x1e" {
				t.Fatalf("24 and 6 is %q", counted.value)
			}
			wantCode(t, c, frame(memproto.OpDecrement, appended, counter(1, 0, 0), key, ""), memproto.CodeExists)
			wantCode(t, c, frame(memproto.OpDelete, appended, "", key, ""), memproto.CodeExists)
			wantCode(t, c, frame(memproto.OpDelete, counted.cas, "", key, ""), memproto.CodeOK)
			wantCode(t, c, getFrame(key), memproto.CodeNotFound)
		}
	}
}
