package memcachedtest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what a FaultProxy does to the traffic between its clients and its upstream.
type Fault int

const (
	Pass     Fault = iota // every byte goes through
	Delay                 // each piece of reply waits ReplyDelay first
	Stall                 // replies are held back until the fault changes; requests still reach the upstream
	Reset                 // instead of the next piece of reply the client gets a TCP reset
	Garbage               // the next piece of reply is replaced by bytes that are no memcached reply
	Truncate              // half of the next piece of reply is sent, then the connection is closed
	Refuse                // nothing listens: connections are refused, the present ones closed
)

// ReplyDelay is how long each piece of reply waits under Delay.
const ReplyDelay = 100 * time.Millisecond

// garbage is what a client sees under Garbage: no line of it is a reply to any request.
const garbage = "\x00\xffWHAT is 7 this\r\nVALUE\r\n"

// FaultProxy forwards TCP connections to one upstream and injects faults into the replies. All methods may be called
// from any goroutine.
type FaultProxy struct {
	tb       testing.TB
	addr     string
	upstream string
	wg       sync.WaitGroup

	mu       sync.Mutex
	fault    Fault
	changed  chan struct{}         // closed and replaced when fault changes
	listener net.Listener          // nil under Refuse
	pairs    map[net.Conn]net.Conn // client side to upstream side of each open pair
}

// Proxy starts a FaultProxy in front of upstream that at first passes everything. It ends with the test.
func Proxy(tb testing.TB, upstream string) *FaultProxy {
	tb.Helper()
	p := &FaultProxy{
		tb:       tb,
		addr:     Reserve(tb),
		upstream: upstream,
		changed:  make(chan struct{}),
		pairs:    make(map[net.Conn]net.Conn),
	}
	p.listen()
	tb.Cleanup(func() {
		p.Set(Refuse)
		p.wg.Wait()
	})
	return p
}

// Addr returns the host:port at which the proxy listens; it stays the same across Refuse.
func (p *FaultProxy) Addr() string { return p.addr }

// Set changes the fault. Replies held back by Stall are treated as the new fault says.
func (p *FaultProxy) Set(f Fault) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.fault
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	switch {
	case f == Refuse && old != Refuse:
		p.refuseLocked()
	case f != Refuse && old == Refuse:
		p.listenLocked()
	}
}

// Cut closes every open connection and leaves the fault, and the listener, as they are.
func (p *FaultProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

// Conns returns how many client connections are open.
func (p *FaultProxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

func (p *FaultProxy) listen() {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listenLocked()
}

func (p *FaultProxy) listenLocked() {
	p.tb.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.tb.Fatalf("cannot listen for the fault proxy: %v", err)
	}
	p.listener = l
	p.wg.Go(func() { p.accept(l) })
}

func (p *FaultProxy) refuseLocked() {
	p.listener.Close()
	p.cutLocked()
}

func (p *FaultProxy) cutLocked() {
	for client, up := range p.pairs {
		client.Close()
		up.Close()
	}
}

func (p *FaultProxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // closed by Refuse
		}
		up, err := net.Dial("tcp", p.upstream)
		if err != nil {
			client.Close()
			continue
		}
		if !p.add(client, up) {
			client.Close()
			up.Close()
			continue
		}
		p.wg.Go(func() { p.forwardRequests(client, up) })
		p.wg.Go(func() { p.forwardReplies(client, up) })
	}
}

// add registers a pair, unless Refuse came between accept and now.
func (p *FaultProxy) add(client, up net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == Refuse {
		return false
	}
	p.pairs[client] = up
	return true
}

func (p *FaultProxy) drop(client, up net.Conn) {
	client.Close()
	up.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pairs, client)
}

func (p *FaultProxy) forwardRequests(client, up net.Conn) {
	defer p.drop(client, up)
	buf := make([]byte, 32<<10)
	for {
		n, err := client.Read(buf)
		if _, werr := up.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *FaultProxy) forwardReplies(client, up net.Conn) {
	defer p.drop(client, up)
	buf := make([]byte, 32<<10)
	for {
		n, err := up.Read(buf)
		if n > 0 && !p.reply(client, buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// reply hands one piece of reply to the client as the present fault says, and tells whether the connection goes on.
func (p *FaultProxy) reply(client net.Conn, piece []byte) bool {
	switch p.settled() {
	case Refuse:
		return false
	case Reset:
		client.(*net.TCPConn).SetLinger(0)
		return false
	case Garbage:
		piece = []byte(garbage)
	case Truncate:
		client.Write(piece[:(len(piece)+1)/2])
		return false
	}
	_, err := client.Write(piece)
	return err == nil
}

// settled waits out Stall and Delay and returns the fault to apply then.
func (p *FaultProxy) settled() Fault {
	for {
		p.mu.Lock()
		fault, changed := p.fault, p.changed
		p.mu.Unlock()
		switch fault {
		case Stall:
			<-changed
		case Delay:
			select {
			case <-changed:
			case <-time.After(ReplyDelay):
				return Delay
			}
		default:
			return fault
		}
	}
}
