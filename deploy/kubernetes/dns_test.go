package kubernetes

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// clusterDNS answers as the DNS of a cluster does of a StatefulSet with three pods and a headless Service: with a
// name for each pod. The pods' addresses are 127.0.0.1 to 3. It returns where it listens.
func clusterDNS(t *testing.T, service, domain string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return // closed
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			answer(&m, service, domain)
			if packed, err := m.Pack(); err == nil {
				conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

func answer(m *dnsmessage.Message, service, domain string) {
	q := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable = true, true, true
	m.Additionals = nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5}
	switch name := strings.TrimSuffix(q.Name.String(), "."); {
	case q.Type == dnsmessage.TypeSRV && name == service+"."+domain:
		for i := range 3 {
			target := dnsmessage.MustNewName(fmt.Sprintf("memcached-%d.%s.", i, domain))
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.SRVResource{Weight: 33, Port: 11211, Target: target}})
		}
	case q.Type == dnsmessage.TypeA && strings.HasPrefix(name, "memcached-") && strings.HasSuffix(name, "."+domain):
		address := [4]byte{127, 0, 0, name[len("memcached-")] - '0' + 1}
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: address}}}
	case q.Type != dnsmessage.TypeAAAA:
		m.RCode = dnsmessage.RCodeNameError
	}
}
