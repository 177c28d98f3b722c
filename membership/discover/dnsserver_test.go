package discover

import (
	"net"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a DNS server on loopback whose answers the test sets.
type zone struct {
	conn net.PacketConn

	mu    sync.Mutex
	rcode dnsmessage.RCode                    // guarded by mu, as is all below
	ttl   uint32                              // seconds
	a     map[string][]string                 // addresses by host, dotted
	srv   map[string][]dnsmessage.SRVResource // by name
	asked int
}

func serveDNS(t *testing.T) *zone {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{conn: c, ttl: 60, a: map[string][]string{}, srv: map[string][]dnsmessage.SRVResource{}}
	var wg sync.WaitGroup
	wg.Go(z.serve)
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return z
}

func (z *zone) set(f func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	f()
}

func (z *zone) serve() {
	buf := make([]byte, 2048)
	for {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var q dnsmessage.Message
		if q.Unpack(buf[:n]) == nil && len(q.Questions) == 1 {
			if b, err := z.answer(q); err == nil {
				z.conn.WriteTo(b, from)
			}
		}
	}
}

func (z *zone) answer(q dnsmessage.Message) ([]byte, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	question := q.Questions[0]
	r := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.ID, Response: true, RCode: z.rcode, RecursionAvailable: true},
		Questions: q.Questions,
	}
	if z.rcode == dnsmessage.RCodeSuccess {
		for _, body := range z.records(question) {
			h := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: z.ttl}
			r.Answers = append(r.Answers, dnsmessage.Resource{Header: h, Body: body})
		}
	}
	return r.Pack()
}

func (z *zone) records(q dnsmessage.Question) []dnsmessage.ResourceBody {
	var all []dnsmessage.ResourceBody
	for _, s := range z.a[q.Name.String()] {
		ip := net.ParseIP(s)
		switch v4 := ip.To4(); {
		case q.Type == dnsmessage.TypeA && v4 != nil:
			all = append(all, &dnsmessage.AResource{A: [4]byte(v4)})
		case q.Type == dnsmessage.TypeAAAA && v4 == nil:
			all = append(all, &dnsmessage.AAAAResource{AAAA: [16]byte(ip)})
		}
	}
	if q.Type == dnsmessage.TypeSRV {
		for _, s := range z.srv[q.Name.String()] {
			all = append(all, &s)
		}
	}
	return all
}
