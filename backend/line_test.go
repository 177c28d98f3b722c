package backend

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"cacherouter/memproto"
	"cacherouter/reactor"
)

// askJoined is ask for requests that say which key they are about, as those of a router do.
func (l *loop) askJoined(s *Server, requests ...string) []*asked {
	l.t.Helper()
	seed := maphash.MakeSeed()
	var all []*asked
	for _, r := range requests {
		all = append(all, newCall(l.t, r))
	}
	l.do(func() {
		for i, a := range all {
			_, rest := memproto.NextWord([]byte(requests[i]))
			key, _ := memproto.NextWord(rest)
			s.Claim(&a.Call, Small, maphash.Bytes(seed, []byte(strings.TrimSpace(string(key)))))
			s.Send(&a.Call, Small, []byte(requests[i]))
		}
	})
	return all
}

// Gets that are sent in one turn travel on one line, and each is told what it would have
// been told by itself, however the reply comes.
func TestJoinedGets(t *testing.T) {
	a, b, c := hit("a", "1"), hit("b", "22"), hit("c", "")
	block := func(hits ...string) string {
		return strings.ReplaceAll(strings.Join(hits, ""), "END\r\n", "") + "END\r\n"
	}
	const miss, fault = "END\r\n", "SERVER_ERROR out of memory writing get response\r\n"
	for _, test := range []struct {
		reply string
		want  [3]string
	}{
		{block(a, b, c), [3]string{a, b, c}},
		{block(a, b), [3]string{a, b, miss}},
		{block(a, c), [3]string{a, miss, c}},
		{block(b, c), [3]string{miss, b, c}},
		{block(c), [3]string{miss, miss, c}},
		{block(b), [3]string{miss, b, miss}},
		{miss, [3]string{miss, miss, miss}},
		{fault, [3]string{fault, fault, fault}},
		{a[:len(a)-len(miss)] + fault, [3]string{a, fault, fault}},
	} {
		engines(t, func(t *testing.T, l *loop) {
			f := listen(t, "127.0.0.1:0")
			s := l.start(Config{Address: f.addr(), Join: true})
			p := f.accept()
			l.opened(s)
			calls := l.askJoined(s, "get a\r\n", "get b\r\n", "get c\r\n", "delete d\r\n")
			p.expect("get a b c\r\ndelete d\r\n")
			reply := test.reply + "DELETED\r\n"
			cut := rand.IntN(len(reply))
			p.send(reply[:cut])
			p.send(reply[cut:])
			for i, want := range test.want {
				calls[i].want(want)
			}
			calls[3].want("DELETED\r\n")
			l.do(func() {
				if st := s.Stats(); st.Joined != 2 || st.Calls != 4 || st.InFlight != 0 || st.BytesIn != uint64(len(reply)) {
					t.Errorf("stats are %+v", st)
				}
			})
		})
	}
}

// What is put together and what is not. No request overtakes another one.
func TestWhatIsJoined(t *testing.T) {
	for _, test := range []struct{ asked, want string }{
		{"get a|get b", "get a b\r\n"},
		{"gets a|gets b|get c", "gets a b\r\nget c\r\n"},
		{"get a|get a", "get a\r\nget a\r\n"},
		{"get a|get b|get a|get c", "get a b\r\nget a c\r\n"},
		{"get a|delete b|get c|get d", "get a\r\ndelete b\r\nget c d\r\n"},
		{"get a|get  b", "get a\r\nget  b\r\n"},
		{"get a |get b", "get a \r\nget b\r\n"},
		{"get a b|get c", "get a b\r\nget c\r\n"},
		{"get a|get b c", "get a\r\nget b c\r\n"},
		{"mg a v|mg b v", "mg a v\r\nmg b v\r\n"},
		{"gat 0 a|gat 0 b", "gat 0 a\r\ngat 0 b\r\n"},
		{"get" + keys(0, 40, "|get"), "get" + keys(0, 32, "") + "\r\nget" + keys(32, 40, "") + "\r\n"},
	} {
		l := startLoop(t, reactor.Config{})
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), Join: true})
		p := f.accept()
		l.opened(s)
		l.askJoined(s, strings.Split(strings.ReplaceAll(test.asked, "|", "\r\n|")+"\r\n", "|")...)
		p.expect(test.want)
	}
}

// keys returns keys with a space before each, and something between them.
func keys(from, to int, between string) string {
	var words []string
	for i := from; i < to; i++ {
		words = append(words, fmt.Sprintf(" k%d", i))
	}
	return strings.Join(words, between)
}

// A server that answers a line with what was not asked for, or in another order, is not
// believed, and not told such lines any more.
func TestBadReplyToJoinedGets(t *testing.T) {
	value := func(key string) string { return strings.TrimSuffix(hit(key, "1"), "END\r\n") }
	for reply, first := range map[string]string{
		value("x"):                 "restarted",
		"STORED\r\n":               "restarted",
		value("b") + hit("a", "1"): "END\r\n",
		value("a") + hit("c", "1"): hit("a", "1"),
	} {
		l := startLoop(t, reactor.Config{})
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), Join: true})
		p := f.accept()
		l.opened(s)
		calls := l.askJoined(s, "get a\r\n", "get b\r\n")
		p.expect("get a b\r\n")
		p.send(reply)
		calls[0].want(first)
		p = f.accept()
		p.expect("get ")
		l.do(func() {
			if !s.cfg.Health.apart.Load() {
				t.Errorf("%q is told lines still", reply)
			}
		})
	}
}

// What is said in half a line that is lost is said again.
func TestJoinedGetsAreResent(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		s := l.start(Config{Address: f.addr(), Join: true})
		p := f.accept()
		l.opened(s)
		calls := l.askJoined(s, "get a\r\n", "get b\r\n", "get c\r\n")
		p.expect("get a b c\r\n")
		p.send("VALUE a 0 1\r\n1\r\n")
		calls[0].want(hit("a", "1"))
		p.reset()
		calls[1].want("restarted")
		calls[2].want("restarted")
		p = f.accept()
		p.expect("get b\r\nget c\r\n")
		p.send("END\r\n" + hit("c", "3"))
		calls[1].want("END\r\n")
		calls[2].want(hit("c", "3"))
	})
}
