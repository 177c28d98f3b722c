package e2e

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// link is the network between one router and one server. It can be a hole, in which all bytes of both directions stay
// until it is healed, and it can reset its connections.
type link struct {
	addr     string
	upstream string
	lie      *forger // changes requests; nil for none
	wg       sync.WaitGroup

	mu     sync.Mutex
	open   chan struct{} // closed while bytes pass
	closed bool
	pairs  map[*net.TCPConn]*net.TCPConn // router's side to server's side
}

// startLink makes a link that passes everything, but for what a lie makes of it, if there is one. It ends with the test.
func startLink(tb testing.TB, upstream string, lie *forger) *link {
	tb.Helper()
	l := &link{
		addr:     memcachedtest.Reserve(tb),
		upstream: upstream,
		lie:      lie,
		open:     make(chan struct{}),
		pairs:    make(map[*net.TCPConn]*net.TCPConn),
	}
	close(l.open)
	listener, err := net.Listen("tcp", l.addr)
	if err != nil {
		tb.Fatalf("cannot listen for a link: %v", err)
	}
	l.wg.Go(func() { l.accept(listener.(*net.TCPListener)) })
	tb.Cleanup(func() {
		listener.Close()
		l.heal()
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.reset()
		l.wg.Wait()
	})
	return l
}

// hole keeps all bytes from now on.
func (l *link) hole() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

// heal ends a hole. What was kept passes now, late, unless its connection was closed by whom it was for.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// reset ends all connections with a TCP reset on both sides.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for router, server := range l.pairs {
		router.SetLinger(0)
		server.SetLinger(0)
		router.Close()
		server.Close()
	}
}

func (l *link) accept(listener *net.TCPListener) {
	for {
		router, err := listener.AcceptTCP()
		if err != nil {
			return // the test is over
		}
		server, err := net.Dial("tcp", l.upstream)
		if err != nil {
			router.Close()
			continue
		}
		l.join(router, server.(*net.TCPConn))
	}
}

// join lets bytes flow between the two sides, unless the test is over.
func (l *link) join(router, server *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		router.Close()
		server.Close()
		return
	}
	l.pairs[router] = server
	l.wg.Go(func() {
		defer l.part(router, server)
		if l.lie != nil {
			l.requests(server, router)
		} else {
			l.bytes(server, router)
		}
	})
	l.wg.Go(func() {
		defer l.part(router, server)
		l.bytes(router, server)
	})
}

func (l *link) part(router, server *net.TCPConn) {
	router.Close()
	server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, router)
}

// passable waits until bytes may pass.
func (l *link) passable() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	<-open
}

// bytes passes on what comes.
func (l *link) bytes(to, from *net.TCPConn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.passable()
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// requests passes on one request after the other, changed by the lie.
func (l *link) requests(to, from *net.TCPConn) {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		l.passable()
		size := dataSize(strings.Fields(line))
		if _, err := io.WriteString(to, l.lie.line(line)); err != nil {
			return
		}
		if _, err := io.CopyN(to, r, size); err != nil {
			return
		}
	}
}

// dataSize returns how many bytes follow a request's line.
func dataSize(words []string) int64 {
	at := 0
	switch {
	case len(words) > 2 && words[0] == "ms":
		at = 2
	case len(words) > 4 && strings.Contains(" set add replace append prepend cas ", " "+words[0]+" "):
		at = 4
	default:
		return 0
	}
	n, _ := strconv.ParseInt(words[at], 10, 64) // the router sends numbers
	return n + int64(len("\r\n"))
}
