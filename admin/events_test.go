package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/router"
)

// serving is a server on a port of its own.
func serving(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(c)
	done := make(chan error)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + ln.Addr().String()
}

// listen asks for events and returns what reads the next one.
func listen(t *testing.T, url string) (next func() string, hangUp func()) {
	t.Helper()
	resp, err := http.Get(url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(resp.Status, resp.Header)
	}
	r := bufio.NewReader(resp.Body)
	t.Cleanup(func() { resp.Body.Close() })
	return func() string {
		t.Helper()
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if blank, _ := r.ReadString('\n'); blank != "\n" {
			t.Fatalf("after a message: %q", blank)
		}
		return strings.TrimPrefix(line, "data: ")
	}, func() { resp.Body.Close() }
}

// Everybody gets the same messages; a change sends one at once; nobody listens, nobody samples.
func TestEvents(t *testing.T) {
	history := NewHistory()
	s, url := serving(t, Config{Router: newIdle(2), History: history, Local: true})
	a, hangUp := listen(t, url)
	first := a()
	b, hangUpToo := listen(t, url)
	if got := b(); got != first {
		t.Error("who comes later does not get the last message")
	}
	log := history.Logger(slog.New(slog.DiscardHandler))
	log.Info("something")
	for _, next := range []func() string{a, b} {
		for !strings.Contains(next(), `"changes_seq":1,`) {
		}
	}
	hangUp()
	hangUpToo()
	deadline := time.Now().Add(10 * time.Second)
	for idle := false; !idle; time.Sleep(time.Millisecond) {
		s.broadcast.mu.Lock()
		idle = s.broadcast.stop == nil
		s.broadcast.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("it goes on when nobody listens")
		}
	}
	if next, _ := listen(t, url); !strings.Contains(next(), `"changes_seq":1,`) {
		t.Error("nothing for who comes again")
	}
}

// Who does not read gets the newest message when it does, and holds up nobody.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := &broadcast{news: func() <-chan struct{} { return nil }}
		b.make = func(_ context.Context) []byte { n++; return []byte(fmt.Sprint(n)) }
		slow, err := b.listen()
		if err != nil {
			t.Fatal(err)
		}
		quick, err := b.listen()
		if err != nil {
			t.Fatal(err)
		}
		for want := 1; want <= 20; want++ {
			if got := string(<-quick); got != fmt.Sprint(want) {
				t.Fatalf("message %s, want %d", got, want)
			}
		}
		synctest.Wait()
		if got := string(<-slow); got != "20" {
			t.Errorf("the slow one gets message %s", got)
		}
		b.leave(slow)
		b.close()
		if _, open := <-quick; open {
			t.Error("it stays open")
		}
		if _, err := b.listen(); err == nil {
			t.Error("it lets one in after its end")
		}
	})
}

func TestTooManyListeners(t *testing.T) {
	_, url := serving(t, Config{Router: newIdle(1), Local: true})
	for range maxListeners {
		next, _ := listen(t, url)
		next()
	}
	resp, err := http.Get(url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || !strings.Contains(string(text), "too many") {
		t.Errorf("%s %q", resp.Status, text)
	}
}

// stuck is a router whose loops do not answer.
type stuck struct{ table *router.Table }

func (s stuck) Table() *router.Table { return s.table }

func (s stuck) Snapshots(ctx context.Context) ([]router.Snapshot, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A router that is too busy to be asked says so, and the page itself still comes.
func TestStuckRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Router: stuck{newIdle(1).table}})
		wants(t, asked(s, "GET", "/api/v1/overview"), 503, "deadline exceeded")
		if m := string(s.event(t.Context())); !strings.Contains(m, `"error":"`) {
			t.Errorf("the event is %s", m)
		}
		wants(t, asked(s, "GET", "/"), 200, "cacherouter")
	})
}

func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{5, 100, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newIdle(n)
			s := New(Config{Router: r, Placing: r.placing})
			from, err := take(b.Context(), r)
			if err != nil {
				b.Fatal(err)
			}
			to, err := take(b.Context(), r)
			if err != nil {
				b.Fatal(err)
			}
			to.at = from.at.Add(time.Second)
			b.ReportAllocs()
			for b.Loop() {
				s.eventOf(window{from, to})
			}
		})
	}
}
