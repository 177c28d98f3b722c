//go:build linux

package router_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/reactor"
	"cacherouter/router"
)

// relay gives clients of one router to another one.
func relay(t *testing.T, to *running) (take func(router.Client), done func()) {
	ch := make(chan router.Client, 10000)
	var carried sync.WaitGroup
	carried.Go(func() {
		for c := range ch {
			if err := to.Adopt(c); err != nil {
				t.Error(err)
			}
		}
	})
	return func(c router.Client) { ch <- c }, func() { close(ch); carried.Wait() }
}

// move moves all clients of a router to another one, and returns when the first has none.
func move(t *testing.T, from, to *running) {
	t.Helper()
	take, done := relay(t, to)
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := from.Move(ctx, take); err != nil {
		t.Error(err)
	}
}

// Clients that ask all the time, some many things at once and some with a pause within a request,
// do not notice that another router serves them.
func TestClientsMoveUnderLoad(t *testing.T) {
	for _, e := range reactor.Engines() {
		if e != reactor.Portable { // which lets no client go
			t.Run(string(e), func(t *testing.T) { moveUnderLoad(t, e) })
		}
	}
}

func moveUnderLoad(t *testing.T, e reactor.Engine) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	from := start(t, config{Config: router.Config{Loops: 2, Engine: e}}, server.Addr())
	to := start(t, config{Config: router.Config{Loops: 2, Engine: e}}, server.Addr())
	const clients, rounds, many = 8, 200, 20
	var busy sync.WaitGroup
	half := make(chan struct{}, clients)
	for i := range clients {
		c := dial(t, from.addr)
		busy.Go(func() {
			for round := range rounds {
				if round == rounds/2 {
					half <- struct{}{}
				}
				if err := converse(c.nc, i, round, many); err != nil {
					t.Errorf("client %d, round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	<-half
	move(t, from, to)
	busy.Wait()
	if got := from.total().Moved; got != clients {
		t.Errorf("%d clients moved, want %d", got, clients)
	}
	for _, r := range []*running{from, to} {
		if n := r.total().Requests; len(n) == 0 {
			t.Error("a router counts no requests")
		}
	}
}

// converse stores a value and asks for it many times, in two writes that end within a request.
func converse(c net.Conn, i, round, many int) error {
	value := fmt.Sprintf("%d-%d", i, round)
	key := fmt.Sprintf("key%d", i)
	ask := fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value) + strings.Repeat("get "+key+"\r\n", many)
	answer := "STORED\r\n" + strings.Repeat(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value), many)
	cut := 1 + (i*31+round*7)%(len(ask)-1)
	for _, part := range []string{ask[:cut], ask[cut:]} {
		if _, err := io.WriteString(c, part); err != nil {
			return err
		}
	}
	got := make([]byte, len(answer))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != answer {
		return fmt.Errorf("answered %q", got)
	}
	return nil
}

// What a client has sent of a large value goes with it.
func TestHalfAValueMoves(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	from, to := start(t, config{}, server.Addr()), start(t, config{}, server.Addr())
	const size = 300_000
	c := dial(t, from.addr)
	c.send("version\r\n")
	c.want("VERSION " + router.DefaultVersion + "\r\n")
	c.send(fmt.Sprintf("set large 0 0 %d\r\n", size) + strings.Repeat("x", size/2))
	move(t, from, to)
	c.send(strings.Repeat("y", size/2) + "\r\nget large\r\n")
	c.want("STORED\r\n")
	c.want(fmt.Sprintf("VALUE large 0 %d\r\n", size) + strings.Repeat("x", size/2) + strings.Repeat("y", size/2) + "\r\nEND\r\n")
}

// A client that moves need not authenticate again, and one that has not done so still must.
func TestApprovalMoves(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	from, to := start(t, config{}, server.Addr()), start(t, config{}, server.Addr())
	guarded := func(r *running) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Serve(ln, router.Listen{Name: "guarded", Passwords: oneUser{}}); err != nil {
			t.Fatal(err)
		}
		return ln.Addr().String()
	}
	addr := guarded(from)
	guarded(to)
	in, out := dial(t, addr), dial(t, addr)
	in.send("set auth 0 0 11\r\nuser secret\r\n")
	in.want("STORED\r\n")
	out.send("get a\r\n")
	out.want("CLIENT_ERROR unauthenticated\r\n")
	move(t, from, to)
	in.send("get a\r\n")
	in.want("END\r\n")
	out.send("get a\r\n")
	out.want("CLIENT_ERROR unauthenticated\r\n")
}

type oneUser struct{}

func (oneUser) Check(user, password []byte) bool {
	return string(user) == "user" && string(password) == "secret"
}

// A client of a listener that is not there is refused, and its connection closed.
func TestAdoptNeedsTheListener(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	from, to := start(t, config{}, server.Addr()), start(t, config{}, server.Addr())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Serve(ln, router.Listen{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	c := dial(t, ln.Addr().String())
	c.send("get a\r\n")
	c.want("END\r\n")
	refused := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := from.Move(ctx, func(c router.Client) { refused <- to.Adopt(c) }); err != nil {
		t.Error(err)
	}
	if err := <-refused; err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("adopted with error %v", err)
	}
	c.wantEnd()
}
