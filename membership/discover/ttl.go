package discover

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ttl watches the answers that a resolver gets go by, because Go's resolver does not tell
// their time to live.
type ttl struct {
	server string

	mu  sync.Mutex
	min time.Duration // guarded by mu: the lowest seen
}

// dial is for net.Resolver.
func (t *ttl) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, cmp.Or(t.server, address))
	if udp, ok := c.(*net.UDPConn); ok {
		// Only what is a PacketConn does the resolver treat as one.
		return &watched{udp, t}, err
	}
	return c, err
}

// watched is a connection on which each read is one answer.
type watched struct {
	*net.UDPConn
	ttl *ttl
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.UDPConn.Read(b)
	if err == nil {
		w.ttl.see(b[:n])
	}
	return n, err
}

// see notes the lowest time to live of an answer's records.
func (t *ttl) see(msg []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(msg); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		h, err := p.AnswerHeader()
		if err != nil || p.SkipAnswer() != nil {
			return
		}
		// No time at all is taken for the shortest one, 0 means not known.
		d := max(time.Nanosecond, time.Duration(h.TTL)*time.Second)
		if t.min == 0 || d < t.min {
			t.min = d
		}
	}
}

func (t *ttl) lowest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.min
}
