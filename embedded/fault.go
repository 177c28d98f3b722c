package embedded

import "time"

// Fault is a way in which a Server misbehaves. The zero value is none.
type Fault int32

const (
	// None: the server does what it should.
	None Fault = iota
	// Stuck: requests are read, but neither carried out nor answered. A connection on
	// which that has happened stays silent for good, as its replies would no longer
	// match its requests.
	Stuck
	// Reset: the next request on a connection is not carried out; the connection is
	// reset.
	Reset
	// Garbage: requests are carried out, but answered with bytes that are no reply.
	Garbage
	// HalfReply: the next request on a connection is carried out, half of its reply is
	// sent, and the connection closed.
	HalfReply
	// RefuseConnections: nothing listens at the address, and the connections there were
	// are closed. The items stay.
	RefuseConnections
)

// garbage is what Garbage answers: neither text nor meta nor binary protocol has it.
const garbage = "\x00\xff*?no reply at all\r\n"

// SetFault makes the server misbehave from the next request on, or behave again with
// None. It may be called at any time from any goroutine. It fails only when it ends
// RefuseConnections and the address cannot be listened at any more; the server then goes
// on refusing.
func (s *Server) SetFault(f Fault) error {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	was := Fault(s.fault.Load())
	switch {
	case s.closed || was == f:
	case f == RefuseConnections:
		s.refuse()
	case was == RefuseConnections:
		if err := s.listenAgain(); err != nil {
			return err
		}
	}
	s.fault.Store(int32(f))
	return nil
}

// SetDelay makes every reply wait for d first, whatever the fault; 0 ends that. It may
// be called at any time from any goroutine.
func (s *Server) SetDelay(d time.Duration) { s.delay.Store(int64(d)) }

// wait waits as long as a reply must, and reports false if the server closes meanwhile.
func (s *Server) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}
