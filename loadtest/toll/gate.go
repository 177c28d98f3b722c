package toll

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Gate stands before one server.
type Gate struct {
	Addr string // host:port, for those who want to reach the server

	road    *Road
	server  string
	places  places
	service atomic.Int64 // nanoseconds
	fault   atomic.Int32 // a Fault

	here Counts // in flight; guarded by the road's mutex, as is seen
	seen Seen   // since the last Clear
}

func (r *Road) newGate(server string) *Gate {
	g := &Gate{road: r, server: server, places: places{free: r.config.Places}, seen: newSeen()}
	g.Take(r.config.Service)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passLocked()
	r.gates = append(r.gates, g)
	return g
}

// Take has the server take so long for each request that gets a place from now on.
func (g *Gate) Take(service time.Duration) { g.service.Store(int64(service)) }

// Fault is a way of a server to fail within no time.
type Fault int32

// The faults.
const (
	Well     Fault = iota
	Refusing       // gets and sets are answered with an error at once, all else as ever
	Hanging        // connections are taken and closed at their first request
)

// Fail has the server fail, or be well again, from now on.
func (g *Gate) Fail(how Fault) { g.fault.Store(int32(how)) }

func (g *Gate) failing(how Fault) bool { return Fault(g.fault.Load()) == how }

// refusal is what a server says that fails.
const refusal = "SERVER_ERROR out of order\r\n"

// refusable reports whether a request with this line is one that a refusing server refuses.
func refusable(line []byte) bool {
	verb, _, _ := bytes.Cut(line, []byte{' '})
	switch string(verb) {
	case "get", "gets", "mg", "set", "add", "ms":
		return true
	}
	return false
}

func (g *Gate) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.server)
		if err != nil {
			client.Close()
			continue
		}
		g.road.running.Go(func() { g.carry(client, server) })
	}
}

// ticket is a request that has passed.
type ticket struct {
	kind    int
	refused bool
	turn    chan struct{} // closed when it has a place
	done    chan struct{} // closed when the reply may go, or nobody waits for that any more
}

// pipelined is how many requests of one connection may be in flight before no more are read.
const pipelined = 4096

// carry passes on what one connection asks and is told, until either side ends it. Then what is in
// flight is given up, and what waits for a place leaves.
func (g *Gate) carry(client, server net.Conn) {
	ctx, cancel := context.WithCancel(g.road.ctx)
	leave := func() {
		client.Close()
		server.Close()
	}
	context.AfterFunc(ctx, leave)
	defer leave()
	tickets := make(chan *ticket, pipelined)
	var running sync.WaitGroup
	running.Go(func() { g.replies(cancel, client, server, tickets) })
	g.requests(client, server, func(t *ticket) {
		tickets <- t
		running.Go(func() { g.hold(ctx, t) })
	})
	cancel()
	close(tickets)
	running.Wait()
}

// requests passes requests on, and gives each its ticket, until that fails.
func (g *Gate) requests(client, server net.Conn, give func(*ticket)) {
	in := bufio.NewReader(client)
	var before, buf []byte
	for {
		request, line, err := readRequest(in, buf[:0])
		if err != nil {
			return
		}
		t := &ticket{kind: g.road.kind(before, request[:line]), turn: make(chan struct{}), done: make(chan struct{})}
		t.refused = g.failing(Refusing) && refusable(request[:line])
		g.road.count(g, t.kind, 1)
		before, buf = append(before[:0], request[:line]...), request
		if g.failing(Hanging) {
			g.road.count(g, t.kind, -1)
			return
		}
		if !t.refused {
			g.places.ask(t)
		}
		give(t)
		if t.refused {
			continue
		}
		if _, err := server.Write(request); err != nil {
			return
		}
	}
}

// hold waits for a place, and there for as long as a request takes.
func (g *Gate) hold(ctx context.Context, t *ticket) {
	defer close(t.done)
	if t.refused {
		return
	}
	defer g.places.leave(t)
	select {
	case <-t.turn:
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(time.Duration(g.service.Load()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// replies passes on the reply to each ticket when it is time, and takes the rest back once that
// fails.
func (g *Gate) replies(cancel func(), client, server net.Conn, tickets <-chan *ticket) {
	in := bufio.NewReader(server)
	reply := []byte(nil)
	for t := range tickets {
		var err error
		if t.refused {
			reply = append(reply[:0], refusal...)
		} else {
			reply, err = readReply(in, reply[:0])
		}
		if err == nil {
			<-t.done
			_, err = client.Write(reply)
		}
		if err != nil {
			cancel()
		}
		g.road.count(g, t.kind, -1)
	}
}
