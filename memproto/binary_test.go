package memproto

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packet builds a binary request; lie may change its header.
func packet(op Opcode, extras, key, value string, lie ...func(header []byte)) []byte {
	b := make([]byte, binaryHeader, binaryHeader+len(extras)+len(key)+len(value))
	b[0], b[1], b[4] = BinaryMagic, byte(op), byte(len(extras))
	binary.BigEndian.PutUint16(b[2:], uint16(len(key)))
	binary.BigEndian.PutUint32(b[8:], uint32(len(extras)+len(key)+len(value)))
	binary.BigEndian.PutUint32(b[12:], 0xfeedf00d)
	for _, f := range lie {
		f(b)
	}
	return append(append(append(b, extras...), key...), value...)
}

func withCAS(cas uint64) func([]byte) {
	return func(h []byte) { binary.BigEndian.PutUint64(h[16:], cas) }
}

func bodyLength(n uint32) func([]byte) {
	return func(h []byte) { binary.BigEndian.PutUint32(h[8:], n) }
}

// store and counter build extras.
func storeExtras(flags, expiry uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, flags), expiry))
}

func counterExtras(delta, initial uint64, expiry uint32) string {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, delta), initial)
	return string(binary.BigEndian.AppendUint32(b, expiry))
}

func expiryExtras(expiry uint32) string { return string(binary.BigEndian.AppendUint32(nil, expiry)) }

func TestForwardBinary(t *testing.T) {
	f := func(frame []byte, want string) {
		t.Helper()
		var r BinaryRequest
		n, status := new(Parser).ParseBinary(frame, &r)
		if n != len(frame) || status != Complete {
			t.Fatalf("ParseBinary takes %d of %d bytes, status %d", n, len(frame), status)
		}
		got, verb := r.Forward(nil)
		if string(got) != want {
			t.Errorf("Forward = %q, want %q", got, want)
		}
		if word, _ := NextWord(got); string(word) != verb.String() {
			t.Errorf("Forward says verb %s for %q", verb, got)
		}
	}
	f(packet(OpGet, "", "a", ""), "gets a\r\n")
	f(packet(OpGetKQ, "", "a b", ""), "mg YSBi v f c b\r\n")
	f(packet(OpGetQ, "", "\x01\t\xff", ""), "gets \x01\t\xff\r\n")
	f(packet(OpGet, "", "cr\r", ""), "mg Y3IN v f c b\r\n")
	f(packet(OpGetAndTouch, expiryExtras(30), "a", ""), "gats 30 a\r\n")
	f(packet(OpGetAndTouchKQ, expiryExtras(30), "a\n", ""), "mg YQo= v f c T30 b\r\n")
	f(packet(OpTouch, expiryExtras(30), "a", ""), "mg a f c T30\r\n")
	f(packet(OpTouch, expiryExtras(0x80000000), "a", ""), "mg a f c T0\r\n")
	f(packet(OpTouch, expiryExtras(0x7fffffff), "a", ""), "mg a f c T2147483647\r\n")
	f(packet(OpSet, storeExtras(0, 0), "a", "v"), "ms a 1 c\r\nv\r\n")
	f(packet(OpSetQ, storeExtras(0xffffffff, 9), "a", ""), "ms a 0 c F4294967295 T9\r\n\r\n")
	f(packet(OpSet, storeExtras(1, 0xffffffff), "a\x00", "v", withCAS(1<<63)), "ms YQA= 1 c F1 C9223372036854775808 b\r\nv\r\n")
	f(packet(OpAdd, storeExtras(0, 0), "a", "v"), "ms a 1 c ME\r\nv\r\n")
	f(packet(OpAdd, storeExtras(0, 0), "a", "v", withCAS(5)), "ms a 1 c C5\r\nv\r\n")
	f(packet(OpReplaceQ, storeExtras(0, 0), "a", "v"), "ms a 1 c MR\r\nv\r\n")
	f(packet(OpReplace, storeExtras(0, 0), "a", "v", withCAS(5)), "ms a 1 c C5\r\nv\r\n")
	f(packet(OpAppend, "", "a", "\r\n"), "ms a 2 c MA\r\n\r\n\r\n")
	f(packet(OpPrependQ, "", "a", "v", withCAS(5)), "ms a 1 c MP C5\r\nv\r\n")
	f(packet(OpDelete, "", "a", ""), "md a\r\n")
	f(packet(OpDeleteQ, "", "a ", "", withCAS(5)), "md YSA= C5 b\r\n")
	f(packet(OpIncrement, counterExtras(1, 10, 0xffffffff), "a", ""), "ma a v c D1\r\n")
	f(packet(OpDecrementQ, counterExtras(1<<64-1, 10, 60), "a", "", withCAS(5)), "ma a v c MD D18446744073709551615 N60 J10 C5\r\n")
	f(packet(OpIncrement, counterExtras(1, 10, 0xfffffffe), "a", ""), "ma a v c D1 N0 J10\r\n")
}

func TestRefusedBinary(t *testing.T) {
	p := Parser{MaxValue: 100}
	f := func(frame []byte, want BinaryRequest) {
		t.Helper()
		var r BinaryRequest
		_, status := p.ParseBinary(frame, &r)
		if status != Refused {
			t.Fatalf("status %d, want %d", status, Refused)
		}
		got := BinaryRequest{Refusal: r.Refusal, Close: r.Close, Skip: r.Skip, Drops: r.Drops}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q is refused otherwise (-want +got):\n%s", frame[:binaryHeader], diff)
		}
	}
	fatal := BinaryRequest{Refusal: CodeInvalid, Close: true}
	long := strings.Repeat("k", MaxKey+1)
	f(packet(OpGet, "", long, ""), fatal)
	f(packet(OpSet, storeExtras(0, 0), long, "v"), fatal)
	f(packet(OpGet, "", "", ""), fatal)
	f(packet(OpGet, "1234", "a", ""), fatal)
	f(packet(OpGetQ, "", "a", "tail"), fatal)
	f(packet(OpTouch, "1234", "a", "tail"), fatal)
	f(packet(OpTouch, "", "a", ""), fatal)
	f(packet(OpSet, "1234", "a", "v"), fatal)
	f(packet(OpSet, storeExtras(0, 0), "", "v"), fatal)
	f(packet(OpAppend, "1234", "a", "v"), fatal)
	f(packet(OpIncrement, "1234", "a", ""), fatal)
	f(packet(OpNoop, "", "a", ""), fatal)
	f(packet(OpVersion, "", "", "v"), fatal)
	f(packet(OpQuit, "1", "", ""), fatal)
	f(packet(OpFlush, "123", "", ""), fatal)
	f(packet(OpStat, "1", "", ""), fatal)
	f(packet(OpSASLAuth, "", "", "v"), fatal)

	f(packet(OpGet, "", "abc", "", bodyLength(2)), BinaryRequest{Refusal: CodeUnknownCommand, Close: true})
	f(packet(0x1b, "1234", "", ""), BinaryRequest{Refusal: CodeUnknownCommand})
	f(packet(0xff, "12", "abc", "tail"), BinaryRequest{Refusal: CodeUnknownCommand, Skip: 4})
	f(packet(OpSet, storeExtras(0, 0), "a", "", bodyLength(9+101)), BinaryRequest{Refusal: CodeTooLarge, Skip: 101, Drops: true})
	f(packet(OpAddQ, storeExtras(0, 0), "a", "", bodyLength(9+101)), BinaryRequest{Refusal: CodeTooLarge, Skip: 101})
	f(packet(OpSet, storeExtras(0, 0), " "+long[:187], "", bodyLength(8+188+101)), BinaryRequest{Refusal: CodeTooLarge, Skip: 101})
	f(packet(OpSet, storeExtras(0, 0), "a", "", bodyLength(1<<32-1)), BinaryRequest{Refusal: CodeTooLarge, Close: true})
	f(packet(OpSet, storeExtras(0, 0), " "+long[:187], "v"), BinaryRequest{Refusal: CodeInvalid, Skip: 1})
}

func TestBinaryMagic(t *testing.T) {
	f := func(b string, want Status) {
		t.Helper()
		var r BinaryRequest
		if _, status := new(Parser).ParseBinary([]byte(b), &r); status != want {
			t.Errorf("%q: status %d, want %d", b, status, want)
		}
	}
	f("get a\r\n", Incomplete) // as memcached, which looks at whole headers only
	f("get abcdefghijklmnopqrs\r\n", Hangup)
	f("\x81"+strings.Repeat("\x00", 23), Hangup)
}

// answer writes what an answer says, without its opaque.
func answer(b []byte) string {
	var out strings.Builder
	for len(b) >= binaryHeader {
		body := binary.BigEndian.Uint32(b[8:])
		fmt.Fprintf(&out, "%x/%02x %x+%d+%d cas=%d %q;", b[0], b[1], binary.BigEndian.Uint16(b[6:]), b[4],
			binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint64(b[16:]), b[binaryHeader:binaryHeader+int(body)])
		b = b[binaryHeader+int(body):]
	}
	return strings.TrimSuffix(out.String(), ";") + string(b)
}

func TestAnswerBinary(t *testing.T) {
	f := func(op Opcode, reply, want string) {
		t.Helper()
		var c BinaryCall
		c.Remember(&BinaryRequest{Op: op, Opaque: 0xfeedf00d, Key: []byte("key")})
		head, value := c.Answer(nil, []byte(reply))
		b := append(head, value...)
		if got := answer(b); got != want {
			t.Errorf("%02x: %q is answered with %s, want %s", op, reply, got, want)
		}
		if len(b) > 0 && binary.BigEndian.Uint32(b[12:]) != 0xfeedf00d {
			t.Errorf("%02x: %q is answered with another opaque", op, reply)
		}
	}
	hit := "VALUE key 7 5 12\r\nhello\r\nEND\r\n"
	f(OpGet, hit, `81/00 0+4+0 cas=12 "\x00\x00\x00\ahello"`)
	f(OpGetQ, hit, `81/09 0+4+0 cas=12 "\x00\x00\x00\ahello"`)
	f(OpGetK, hit, `81/0c 0+4+3 cas=12 "\x00\x00\x00\akeyhello"`)
	f(OpGetKQ, "VA 5 f4294967295 c18446744073709551615\r\nhello\r\n", `81/0d 0+4+3 cas=18446744073709551615 "\xff\xff\xff\xffkeyhello"`)
	f(OpGetAndTouchK, hit, `81/23 0+4+3 cas=12 "\x00\x00\x00\akeyhello"`)
	f(OpGet, "END\r\n", `81/00 1+0+0 cas=0 "Not found"`)
	f(OpGetK, "EN\r\n", `81/0c 1+0+3 cas=0 "key"`)
	f(OpGetQ, "END\r\n", ``)
	f(OpGetKQ, "EN\r\n", ``)
	f(OpGetAndTouchQ, "END\r\n", ``)
	f(OpTouch, "HD f7 c12\r\n", `81/1c 0+4+0 cas=12 "\x00\x00\x00\a"`)
	f(OpTouch, "EN\r\n", `81/1c 1+0+0 cas=0 "Not found"`)

	f(OpSet, "HD c12\r\n", `81/01 0+0+0 cas=12 ""`)
	f(OpSetQ, "HD c12\r\n", ``)
	f(OpSetQ, "EX\r\n", `81/11 2+0+0 cas=0 "Data exists for key."`)
	f(OpSet, "NF\r\n", `81/01 1+0+0 cas=0 "Not found"`)
	f(OpAddQ, "NS\r\n", `81/12 2+0+0 cas=0 "Data exists for key."`)
	f(OpReplace, "NS\r\n", `81/03 1+0+0 cas=0 "Not found"`)
	f(OpAppend, "NS\r\n", `81/0e 5+0+0 cas=0 "Not stored."`)
	f(OpDelete, "HD\r\n", `81/04 0+0+0 cas=0 ""`)
	f(OpDeleteQ, "NF\r\n", `81/14 1+0+0 cas=0 "Not found"`)
	f(OpIncrement, "VA 2 c12\r\n10\r\n", `81/05 0+0+0 cas=12 "\x00\x00\x00\x00\x00\x00\x00\n"`)
	f(OpIncrementQ, "VA 2 c12\r\n10\r\n", ``)
	f(OpDecrement, "NF\r\n", `81/06 1+0+0 cas=0 "Not found"`)
	f(OpFlush, "OK\r\n", `81/08 0+0+0 cas=0 ""`)
	f(OpFlushQ, "OK\r\n", ``)

	f(OpIncrementQ, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
		`81/15 6+0+0 cas=0 "Non-numeric server-side value for incr or decr"`)
	f(OpSetQ, "SERVER_ERROR object too large for cache\r\n", `81/11 3+0+0 cas=0 "Too large."`)
	f(OpSet, "SERVER_ERROR out of memory storing object\r\n", `81/01 82+0+0 cas=0 "out of memory storing object"`)
	f(OpGetQ, "SERVER_ERROR backend timeout\r\n", `81/09 86+0+0 cas=0 "backend timeout"`)
	f(OpStat, "SERVER_ERROR backend timeout\r\n", `81/10 86+0+0 cas=0 "backend timeout"`)
	f(OpSet, "CLIENT_ERROR bad command line format\r\n", `81/01 4+0+0 cas=0 "Invalid arguments"`)
	f(OpSet, "ERROR\r\n", `81/01 81+0+0 cas=0 "Unknown command"`)
	f(OpFlush, "CLIENT_ERROR flush_all not allowed\r\n", `81/08 20+0+0 cas=0 "Auth failure."`)
	f(OpSet, "TOUCHED\r\n", `81/01 84+0+0 cas=0 "Internal error"`)

	f(OpStat, "STAT a 1\r\nSTAT b \r\nSTAT c d e\r\nEND\r\n", `81/10 0+0+1 cas=0 "a1";81/10 0+0+1 cas=0 "b";81/10 0+0+1 cas=0 "cd e";81/10 0+0+0 cas=0 ""`)
	f(OpStat, "RESET\r\n", `81/10 0+0+0 cas=0 ""`)
}

// checkBinary parses b whole and in every prefix, and compares with what b's header says.
func checkBinary(t *testing.T, b []byte) {
	t.Helper()
	p := Parser{MaxValue: 1 << 10}
	var r BinaryRequest
	n, status := p.ParseBinary(b, &r)
	for cut := 0; cut < n; cut++ {
		var part BinaryRequest
		m, early := p.ParseBinary(b[:cut], &part)
		if m != 0 || early != Incomplete || part.Need <= cut || part.Need > n {
			t.Fatalf("%d bytes of %d: takes %d, status %d, needs %d", cut, n, m, early, part.Need)
		}
	}
	if status == Incomplete && (n != 0 || r.Need <= len(b) || r.Need > 1<<10+binaryHeader+255+1<<16) {
		t.Fatalf("takes %d and needs %d of %d bytes", n, r.Need, len(b))
	}
	if status == Hangup && b[0] == BinaryMagic {
		t.Fatal("hangs up on the right magic")
	}
	if status != Complete {
		return
	}
	size := binaryHeader + int(binary.BigEndian.Uint32(b[8:]))
	if n != size || len(r.Extras)+len(r.Key)+len(r.Value) != size-binaryHeader {
		t.Fatalf("takes %d bytes of a frame of %d", n, size)
	}
	if len(r.Key) > 0 && r.Op.Verb() != Unknown && r.Op != OpStat {
		checkForward(t, &r)
	}
}

// checkForward reads with the text parser what a binary request becomes.
func checkForward(t *testing.T, r *BinaryRequest) {
	t.Helper()
	line, verb := r.Forward(nil)
	var text Request
	n, status := new(Parser).Parse(line, &text)
	if n != len(line) || status != Complete || text.Verb != verb {
		t.Fatalf("%q is no request: %d of %d bytes, status %d, %s", line, n, len(line), status, text.Refusal)
	}
	if key := text.RouteKey(make([]byte, MaxKey+8)); !bytes.Equal(key, r.Key) {
		t.Fatalf("%q is about key %q, want %q", line, key, r.Key)
	}
	if len(text.Key) > MaxKey {
		t.Fatalf("%q has a key of %d bytes", line, len(text.Key))
	}
	if verb == MetaSet && string(text.Data) != string(r.Value)+"\r\n" {
		t.Fatalf("%q carries %q, want %q", line, text.Data, r.Value)
	}
}

func FuzzParseBinary(f *testing.F) {
	for op := range opcodes {
		f.Add(packet(Opcode(op), "", "key", ""))
		f.Add(packet(Opcode(op), "1234", "k y", "value"))
		f.Add(packet(Opcode(op), "12345678", "key", "value", withCAS(7)))
		f.Add(packet(Opcode(op), "12345678901234567890", "\x00", ""))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkBinary(t, b) })
}

// FuzzAnswerBinary frames a backend's bytes and answers with them: the answer is whole
// frames, whatever they are.
func FuzzAnswerBinary(f *testing.F) {
	for _, reply := range []string{"VALUE k 1 2 3\r\nab\r\nEND\r\n", "VA 2 f1 c2\r\n10\r\n", "HD c1\r\n", "NS\r\n", "SERVER_ERROR x\r\n", "STAT a b\r\n"} {
		f.Add(byte(OpGetKQ), reply)
		f.Add(byte(OpIncrement), reply)
	}
	f.Fuzz(func(t *testing.T, op byte, reply string) {
		for _, v := range []Verb{Gets, MetaGet, MetaSet, MetaDelete, MetaArithmetic} {
			u, err := NextUnit([]byte(reply), v, true)
			if err != nil || u.Size == 0 || !u.Last {
				continue
			}
			var c BinaryCall
			c.Remember(&BinaryRequest{Op: Opcode(op), Key: []byte("key")})
			head, value := c.Answer(nil, []byte(reply)[:u.Size])
			b := append(head, value...)
			for len(b) > 0 {
				if len(b) < binaryHeader || len(b) < binaryHeader+int(binary.BigEndian.Uint32(b[8:])) {
					t.Fatalf("%q is answered with a broken frame %q", reply, b)
				}
				b = b[binaryHeader+int(binary.BigEndian.Uint32(b[8:])):]
			}
		}
	})
}

// binaryTurn is one request and its answer, in buffers that are used again.
type binaryTurn struct {
	request BinaryRequest
	call    BinaryCall
	line    []byte
	answer  []byte
}

func (x *binaryTurn) run(p *Parser, frame, reply []byte) {
	p.ParseBinary(frame, &x.request)
	x.call.Remember(&x.request)
	x.line, _ = x.request.Forward(x.line[:0])
	x.answer, _ = x.call.Answer(x.answer[:0], reply)
}

var binaryTurns = []struct{ name, frame, reply string }{
	{"get", string(packet(OpGetKQ, "", "user:42", "")), "VALUE user:42 7 5 12\r\nhello\r\nEND\r\n"},
	{"base64", string(packet(OpGetKQ, "", "user 42", "")), "VA 5 f7 c12\r\nhello\r\n"},
	{"set", string(packet(OpSet, storeExtras(7, 60), "user:42", "hello", withCAS(3))), "HD c12\r\n"},
	{"incr", string(packet(OpIncrement, counterExtras(1, 10, 60), "user:42", "")), "VA 2 c12\r\n10\r\n"},
	{"miss", string(packet(OpGet, "", "user:42", "")), "END\r\n"},
}

func TestBinaryAllocates(t *testing.T) {
	for _, turn := range binaryTurns {
		var x binaryTurn
		p, frame, reply := new(Parser), []byte(turn.frame), []byte(turn.reply)
		x.run(p, frame, reply)
		if n := testing.AllocsPerRun(1000, func() { x.run(p, frame, reply) }); n != 0 {
			t.Errorf("%s: %v allocations per request, want none", turn.name, n)
		}
	}
}

func BenchmarkBinary(b *testing.B) {
	for _, turn := range binaryTurns {
		b.Run(turn.name, func(b *testing.B) {
			var x binaryTurn
			p, frame, reply := new(Parser), []byte(turn.frame), []byte(turn.reply)
			b.ReportAllocs()
			for b.Loop() {
				x.run(p, frame, reply)
			}
		})
	}
}
