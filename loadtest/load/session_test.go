//go:build linux

package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// small is a plan that a slow machine runs in no time.
func small(target string) Plan {
	p := DefaultPlan(target)
	p.Connections, p.Pipeline, p.Keys = 8, 4, 200
	return p
}

func open(t *testing.T, p Plan) *Session {
	t.Helper()
	s, err := Dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// asIs wraps nothing, but has a connection driven by a goroutine.
func asIs(conn net.Conn) (net.Conn, error) { return conn, nil }

func TestCountsAgreeWithTheServersOwn(t *testing.T) {
	f := func(name string, change func(*Plan), x Extent) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			server := memcachedtest.Start(t, "-m", "128")
			p := small(server.Addr())
			change(&p)
			s := open(t, p)
			filled, err := s.Fill(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if filled.Sets != uint64(p.Keys) || filled.Stored != filled.Sets {
				t.Errorf("filled %+v, want %d keys stored", filled.Counts, p.Keys)
			}
			r, err := s.Run(t.Context(), x)
			if err = butForTheRate(r, err); err != nil {
				t.Fatal(err)
			}
			if r.Gets != uint64(server.Stat("cmd_get")) || r.Sets+filled.Sets != uint64(server.Stat("cmd_set")) {
				t.Errorf("counted %d gets, %d+%d sets; the server %d gets, %d sets",
					r.Gets, r.Sets, filled.Sets, server.Stat("cmd_get"), server.Stat("cmd_set"))
			}
			if r.Hits != uint64(server.Stat("get_hits")) || r.Hits != r.Gets || r.Stored != r.Sets {
				t.Errorf("counts %+v; the server counted %d hits", r.Counts, server.Stat("get_hits"))
			}
			if x.Requests > 0 && r.Requests() != uint64(x.Requests) {
				t.Errorf("%d requests were sent, want %d", r.Requests(), x.Requests)
			}
			if r.Stale+r.Late+r.Wrong+r.Lost != 0 {
				t.Errorf("counts %+v", r.Counts)
			}
			sum := Counts{}
			for _, w := range r.Series {
				sum.add(w.Counts)
			}
			if sum != r.Counts {
				t.Errorf("counts %+v, by seconds %+v", r.Counts, sum)
			}
			if r.Rate <= 0 || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 {
				t.Errorf("rate %v, latency %+v", r.Rate, r.Latency)
			}
		})
	}
	f("by number", func(*Plan) {}, Extent{Requests: 5003})
	f("by time", func(*Plan) {}, Extent{Duration: 50 * time.Millisecond})
	f("no pipelining", func(p *Plan) { p.Pipeline = 1 }, Extent{Requests: 1000})
	f("two lanes", func(p *Plan) { p.Lanes, p.Connections = 2, 7 }, Extent{Requests: 1001})
	f("fewer requests than connections", func(p *Plan) { p.Connections = 20 }, Extent{Requests: 3})
	f("large values", func(p *Plan) { p.ValueSize, p.Keys, p.Ratio.Sets = "300000", 20, 10 }, Extent{Requests: 300})
	f("empty values", func(p *Plan) { p.ValueSize = "0" }, Extent{Requests: 500})
	f("two versioned lanes at a rate", func(p *Plan) {
		p.Lanes, p.Connections, p.Versions, p.Rate, p.Choice = 2, 7, true, 50_000, "zipf:1"
	}, Extent{Requests: 5003})
	f("at a rate by time", func(p *Plan) { p.Rate = 2000 }, Extent{Duration: 200 * time.Millisecond})
	f("gomemcache", func(p *Plan) { speakGomemcache(p) }, Extent{Requests: 1001})
	f("gomemcache at a rate", func(p *Plan) { speakGomemcache(p); p.Rate, p.Churn = 5000, 10 }, Extent{Requests: 501})
	for _, protocol := range []Protocol{"", Meta, Binary} {
		speak := func(p *Plan) { p.Protocol = protocol }
		name := "protocol " + string(protocol)
		f(name, speak, Extent{Requests: 5003})
		f(name+", large values", func(p *Plan) { speak(p); p.ValueSize, p.Keys, p.Ratio.Sets = "300000", 20, 10 }, Extent{Requests: 300})
		f(name+", empty values", func(p *Plan) { speak(p); p.ValueSize = "0" }, Extent{Requests: 500})
		f(name+", versions and churn", func(p *Plan) { speak(p); p.Versions, p.Churn = true, 9 }, Extent{Requests: 2003})
		f(name+", all lengths", func(p *Plan) {
			speak(p)
			p.KeySize, p.ValueSize, p.Versions, p.Lives = "gev:30.7984:8.20449:0.078688", "etc", true, "1h:1,2h:1"
		}, Extent{Requests: 2003})
		f(name+", at a rate with churn", func(p *Plan) { speak(p); p.Rate, p.Churn, p.Versions = 20_000, 9, true }, Extent{Requests: 2003})
		f(name+", wrapped", func(p *Plan) { speak(p); p.Wrap = asIs }, Extent{Requests: 5003})
	}
}

// butForTheRate is what else went wrong in a run: a machine that is busy with something else cannot keep a rate.
func butForTheRate(r Result, err error) error {
	if r.Open == nil {
		return err
	}
	r.Open = nil
	return r.Err()
}

func speakGomemcache(p *Plan) {
	p.Client, p.Pipeline, p.Versions, p.Ratio.Multigets, p.MultigetKeys = Gomemcache, 1, true, 0, 3
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, "unix", path, func(q request) string { return miss(q) })
	s := open(t, small("unix:"+path))
	r, err := s.Run(t.Context(), Extent{Requests: 100})
	if err != nil || r.Misses != r.Gets || r.Stored != r.Sets {
		t.Errorf("counts %+v, error %v; want only misses and stored", r.Counts, err)
	}
}

// request is what a fake server is asked.
type request struct {
	verb, key string
	n         int // the how manieth of its connection, from 0
}

func miss(q request) string {
	if q.verb == "set" {
		return "STORED\r\n"
	}
	return "END\r\n"
}

// serve starts a server that answers as it is told, to show faults that the real one has not. An
// empty answer closes the connection.
func serve(t *testing.T, network, addr string, answer func(request) string) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go converse(conn, answer)
		}
	}()
	return l.Addr().String()
}

func converse(conn net.Conn, answer func(request) string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) == 0 {
			return
		}
		q := request{verb: words[0], n: n}
		if len(words) > 1 {
			q.key = words[1]
		}
		if q.verb == "set" {
			size, _ := strconv.Atoi(words[4])
			io.CopyN(io.Discard, in, int64(size)+2)
		}
		reply := "VERSION 1.6.18\r\n"
		if q.verb != "version" {
			reply = answer(q)
		}
		if _, err := io.WriteString(conn, reply); err != nil || reply == "" {
			return
		}
	}
}

// runAgainst loads a fake server with one connection and returns what went wrong.
func runAgainst(t *testing.T, answer func(request) string) (Result, error) {
	t.Helper()
	p := small(serve(t, "tcp", "127.0.0.1:0", answer))
	p.Connections, p.Ratio.Gets = 1, 1
	return open(t, p).Run(t.Context(), Extent{Requests: 100})
}

// other is a key that is not key.
func other(key string) string {
	if key == "lt:00000007" {
		return "lt:00000008"
	}
	return "lt:00000007"
}

func valueOf(p Plan, asked, named string) string {
	var i uint32
	fmt.Sscanf(asked, keyFormat, &i)
	return fmt.Sprintf("VALUE %s 0 %s\r\n%s\r\nEND\r\n", named, p.ValueSize, newKeyspace(p).appendValue(nil, i, 0))
}

func TestWrongAnswersAreCounted(t *testing.T) {
	p := small("x")
	f := func(name string, get func(key string) string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r, err := runAgainst(t, func(q request) string {
				if q.verb == "set" {
					return "STORED\r\n"
				}
				return get(q.key)
			})
			if r.Wrong != r.Gets || r.Gets == 0 || r.Hits != 0 || r.Stored != r.Sets || r.Unanswered != 0 {
				t.Errorf("counts %+v, want every get wrong", r.Counts)
			}
			if err == nil || !strings.Contains(err.Error(), "wrong answers, the first: get lt:") {
				t.Errorf("error %v does not show the first wrong answer", err)
			}
		})
	}
	f("value of another key", func(key string) string { return valueOf(p, other(key), key) })
	f("another key and its value", func(key string) string { return valueOf(p, other(key), other(key)) })
	f("changed byte", func(key string) string { return strings.Replace(valueOf(p, key, key), "abc", "abd", 1) })
	f("another size", func(key string) string { return "VALUE " + key + " 0 3\r\nabc\r\nEND\r\n" })
	f("answer to a set", func(string) string { return "STORED\r\n" })
}

func TestRightAnswersOfTheFakeAreHits(t *testing.T) {
	p := small("x")
	r, err := runAgainst(t, func(q request) string {
		if q.verb == "set" {
			return "STORED\r\n"
		}
		return valueOf(p, q.key, q.key)
	})
	if err != nil || r.Hits != r.Gets {
		t.Errorf("counts %+v, error %v; want only hits", r.Counts, err)
	}
}

func TestErrorAnswersAreCounted(t *testing.T) {
	r, err := runAgainst(t, func(request) string { return "SERVER_ERROR backend timed out\r\n" })
	if r.Errors != 100 || r.Wrong+r.Unanswered != 0 {
		t.Errorf("counts %+v, want 100 errors", r.Counts)
	}
	if err == nil || !strings.Contains(err.Error(), "SERVER_ERROR backend timed out") {
		t.Errorf("error %v does not show the answer", err)
	}
}

func TestBrokenConnectionsLoseWhatTheyOwe(t *testing.T) {
	f := func(name string, last, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r, err := runAgainst(t, func(q request) string {
				if q.n == 10 { // the third of the third batch of four
					return last
				}
				if q.n > 10 {
					return ""
				}
				return miss(q)
			})
			if r.Requests() != 12 || r.Unanswered != 2 || r.Answered() != 10 {
				t.Errorf("counts %+v, want 12 sent and 2 of them unanswered", r.Counts)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want one about %q", err, want)
			}
		})
	}
	f("closed", "", "closed by the other side")
	f("closed in a reply", "VALUE lt:0000", "closed by the other side")
	f("nonsense", "BANANA\r\n", `not memcached's: "BANANA"`)
}

func TestTargetsThatCannotBeUsed(t *testing.T) {
	f := func(name, target string, want ...string) {
		t.Helper()
		_, err := Dial(t.Context(), small(target))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error is %v, want one with %q", name, err, w)
			}
		}
	}
	down := memcachedtest.Reserve(t)
	f("down", down, "cannot use "+down, "connection refused")
	f("no socket", "unix:/nonexistent/socket", "cannot use unix:/nonexistent/socket", "no such file")
	f("no port", "localhost", "cannot use localhost", "missing port")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			bufio.NewReader(conn).ReadString('\n')
			io.WriteString(conn, "220 mail.example ESMTP\r\n")
			conn.Close()
		}
	}()
	f("mail server", l.Addr().String(), "it is no memcached", "220 mail.example")
}

func TestEndOfContextEndsTheRunWithWhatWasMeasured(t *testing.T) {
	server := memcachedtest.Start(t)
	s := open(t, small(server.Addr()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type ending struct {
		r   Result
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		r, err := s.Run(ctx, Extent{Duration: time.Hour})
		ended <- ending{r, err}
	}()
	for begin := time.Now(); server.Stat("cmd_get") < 1000; {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the load does not reach the server")
		}
	}
	cancel()
	var r Result
	select {
	case e := <-ended:
		if r = e.r; e.err != nil {
			t.Fatal(e.err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the load goes on after its context ended")
	}
	if r.Gets < 1000 || r.Gets != uint64(server.Stat("cmd_get")) || r.Unanswered != 0 {
		t.Errorf("counts %+v; the server counted %d gets", r.Counts, server.Stat("cmd_get"))
	}
}

func TestStuckServerLosesRequestsAfterThePatience(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	s := open(t, small(serve(t, "tcp", "127.0.0.1:0", func(request) string { <-stuck; return "" })))
	s.drivers[0].(*lane).limit = 100 * time.Millisecond
	r, err := s.Run(t.Context(), Extent{Requests: 1000})
	if r.Unanswered != r.Requests() || r.Unanswered != 32 {
		t.Errorf("counts %+v, want 32 requests and all of them unanswered", r.Counts)
	}
	if err == nil || !strings.Contains(err.Error(), "no reply in time") {
		t.Errorf("error is %v", err)
	}
}

func TestClosedSessionRunsNothing(t *testing.T) {
	s := open(t, small(memcachedtest.Start(t).Addr()))
	s.Close()
	s.Close()
	if _, err := s.Run(t.Context(), Extent{Requests: 1}); err == nil {
		t.Error("a closed session ran a load")
	}
	if _, err := s.Run(t.Context(), Extent{}); err == nil {
		t.Error("a load without end was accepted")
	}
}
