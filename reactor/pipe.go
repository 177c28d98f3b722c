package reactor

import (
	"errors"
	"sync"
)

// ErrGone means that the other side of a connection has closed it.
var ErrGone = errors.New("the connection is closed")

// Pipe is a connection of a loop whose other side is in this process: what one side sends is
// copied to the other, and no system call is made. Any goroutine may use it.
type Pipe struct {
	loop *Loop
	conn *Conn // of the loop's goroutine
	came func()
	took func(p []byte)
	gone func()

	mu     sync.Mutex
	in     []byte // guarded by mu: sent, and not yet read by the loop
	told   bool   // guarded by mu: the loop knows of it
	closed bool   // guarded by mu: by this side
	dead   bool   // guarded by mu: by the loop
}

// Connect makes a connection of a loop. What its handler, made by h, writes is given to took on the
// loop's goroutine at the end of each turn; took must not wait, and the slice is valid during
// the call. Gone is called there once, when the connection is closed, whoever did it; it may be
// called before Connect returns, if the loop has ended.
func (l *Loop) Connect(h func(*Conn) Handler, took func(p []byte), gone func()) *Pipe {
	p := &Pipe{loop: l, took: took, gone: gone}
	p.came = func() {
		if p.conn != nil {
			p.conn.event(event{readable: true})
		}
	}
	l.load.Add(1)
	attached := l.Post(func() {
		p.conn = newConn(l, p, true)
		p.conn.handler = h(p.conn)
		p.conn.event(event{readable: true}) // what was sent meanwhile
	})
	if !attached {
		l.load.Add(-1)
		p.close()
	}
	return p
}

// Send sends bytes, of which it makes a copy. It never waits: who sends bounds what may be under
// way.
func (p *Pipe) Send(b []byte) error {
	p.mu.Lock()
	if p.closed || p.dead {
		p.mu.Unlock()
		return ErrGone
	}
	p.in = append(p.in, b...)
	tell := !p.told
	p.told = true
	p.mu.Unlock()
	if tell {
		p.loop.Post(p.came) // or the loop has ended, and gone says so
	}
	return nil
}

// Close says that nothing more will be sent. What is owed is still given to took.
func (p *Pipe) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.loop.Post(p.came)
}

// The methods of a socket, which the loop calls.

func (p *Pipe) read(b []byte) (n int, again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = copy(b, p.in)
	rest := copy(p.in, p.in[n:])
	if p.in = p.in[:rest]; rest == 0 {
		p.told = false
		if cap(p.in) > readSize {
			p.in = nil
		}
	}
	return n, n == 0 && !p.closed, nil
}

func (p *Pipe) write(b []byte) (n int, again bool, err error) {
	if len(b) > 0 {
		p.took(b)
	}
	return len(b), false, nil
}

func (p *Pipe) close() {
	p.mu.Lock()
	p.dead, p.in = true, nil
	p.mu.Unlock()
	p.gone()
}

// more reports whether there is an end of the stream that no event will tell of.
func (p *Pipe) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *Pipe) peer() string        { return "local" }
func (p *Pipe) unsent() bool        { return false }
func (p *Pipe) unacknowledged() int { return 0 }
func (p *Pipe) woke(event)          {}
