//go:build unix

package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a link.
func pair(t *testing.T) (a, b *Link) {
	t.Helper()
	a, f, err := newPair()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = linkOf(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// A message comes as it was sent, however long it is, and its file is open there.
func TestMessages(t *testing.T) {
	a, b := pair(t)
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("of the sender")
	sent := []Message{
		{Kind: "empty"},
		{Kind: "head", Head: json.RawMessage(`{"a":1}`)},
		{Kind: "body", Body: bytes.Repeat([]byte("x\n"), 1<<20)},
		{Kind: "edge", Body: bytes.Repeat([]byte{0}, maxPart)},
		{Kind: "file", Head: json.RawMessage(`"f"`), Body: []byte("b"), File: f},
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		for _, m := range sent {
			if err := a.Send(m); err != nil {
				t.Error(err)
			}
		}
		f.Close()
		a.CloseSending()
	})
	defer sending.Wait()
	for _, want := range sent {
		got, err := b.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != want.Kind || !bytes.Equal(got.Head, want.Head) || !bytes.Equal(got.Body, want.Body) || (got.File == nil) != (want.File == nil) {
			t.Errorf("got %q %s, %d bytes, file %v; want %q %s, %d bytes, file %v",
				got.Kind, got.Head, len(got.Body), got.File != nil, want.Kind, want.Head, len(want.Body), want.File != nil)
		}
		if got.File != nil {
			text := make([]byte, 13)
			if _, err := got.File.ReadAt(text, 0); err != nil || string(text) != "of the sender" {
				t.Errorf("the file says %q, %v", text, err)
			}
			got.File.Close()
		}
	}
	if _, err := b.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v, want EOF", err)
	}
}

// A message between others of several senders stays whole.
func TestManySend(t *testing.T) {
	a, b := pair(t)
	const senders, each = 8, 20
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			for range each {
				if err := a.Send(Message{Kind: "k", Body: bytes.Repeat([]byte{byte(i)}, 100_000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	defer sending.Wait()
	for range senders * each {
		m, err := b.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Body) != 100_000 || len(bytes.Trim(m.Body, string(m.Body[:1]))) > 0 {
			t.Fatalf("a message of %d bytes is mixed with another", len(m.Body))
		}
	}
}

// What is no message is an error.
func TestBadPackets(t *testing.T) {
	for _, packet := range []string{"no head", "{\n", "\n", "{}{}\nbody"} {
		a, b := pair(t)
		if _, err := a.conn.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
		if m, err := b.Receive(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q is taken for %+v, %v", packet, m, err)
		}
	}
	a, _ := pair(t)
	head, _ := json.Marshal(strings.Repeat("x", maxPacket))
	if err := a.Send(Message{Kind: "long", Head: head}); err == nil {
		t.Error("a head of any length can be sent")
	}
}

// A socket that was handed over has the same queue: who has connected before is accepted by the
// new owner, though the old one has closed its own.
func TestSocketsKeepTheirQueue(t *testing.T) {
	for _, at := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(t.TempDir(), "s")},
	} {
		var old, next Sockets
		ln, err := old.Listen(at.network, at.address)
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial(at.network, ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		a, b := pair(t)
		err = old.Each(func(network, address string, f *os.File) error {
			return a.Send(Message{Kind: network, Body: []byte(address), File: f})
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := b.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Give(m.Kind, string(m.Body), m.File); err != nil {
			t.Fatal(err)
		}
		old.Keep()
		ln.Close()
		again, err := next.Listen(at.network, at.address)
		if err != nil {
			t.Fatal(err)
		}
		again.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(time.Minute))
		served, err := again.Accept()
		if err != nil {
			t.Fatalf("%s: %v", at.network, err)
		}
		served.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the client reads %v", at.network, err)
		}
		if unused := next.Unused(); len(unused) > 0 {
			t.Errorf("unused: %v", unused)
		}
		again.Close()
	}
}

// Systemd does not say which address a socket was meant for: it is found by where it listens.
func TestSocketsOfSystemd(t *testing.T) {
	given, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(given.Addr().String())
	f, err := given.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	given.Close()
	var s Sockets
	if err := s.Give("", "", f); err != nil {
		t.Fatal(err)
	}
	ln, err := s.Listen("tcp", "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got := ln.Addr().String(); got != "127.0.0.1:"+port {
		t.Errorf("listens on %s", got)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{nil, null} {
		if err := s.Give("tcp", "nothing", f); err == nil {
			t.Errorf("%v was taken for a socket", f)
		}
	}
}

// Sockets that nobody asks for are closed, and named.
func TestUnusedSockets(t *testing.T) {
	given, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := given.Addr().String()
	f, err := given.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	given.Close()
	var s Sockets
	if err := s.Give("tcp", addr, f); err != nil {
		t.Fatal(err)
	}
	if got := s.Unused(); len(got) != 1 || got[0] != addr {
		t.Errorf("unused: %v, want %s", got, addr)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}
