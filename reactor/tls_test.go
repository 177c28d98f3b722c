package reactor

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/certtest"
)

// serveTLS starts an echo server that speaks TLS and returns how to dial it.
func serveTLS(t *testing.T, loops []*Loop) (dialTLS func() *tls.Conn, addr net.Addr, closings chan error) {
	t.Helper()
	ca := certtest.New(t)
	certFile, keyFile, _ := ca.Issue("echo")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closings = make(chan error, 100)
	stop, err := Serve(Listener{
		Net:     ln,
		TLS:     &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: func(c *Conn) Handler { return &echo{c, func(err error) { closings <- err }} },
	}, loops)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return func() *tls.Conn {
		nc := tls.Client(dial(t, ln.Addr()), &tls.Config{RootCAs: roots, ServerName: "echo"})
		if err := nc.Handshake(); err != nil {
			t.Fatal(err)
		}
		return nc
	}, ln.Addr(), closings
}

func TestTLSEcho(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		dialTLS, _, closings := serveTLS(t, startLoops(t, 2, c))
		for range 4 {
			nc := dialTLS()
			for _, piece := range []string{"one\n", "t", "wo\nthr", "ee\n"} { // a record each
				io.WriteString(nc, piece)
			}
			io.WriteString(nc, strings.Repeat("much\n", 40_000)+"quit\n") // many records
			got, err := io.ReadAll(nc)
			if want := "one\ntwo\nthree\n" + strings.Repeat("much\n", 40_000) + "quit\n"; string(got) != want || err != nil {
				t.Errorf("got %d bytes of %d, %v", len(got), len(want), err)
			}
			if err := <-closings; err != nil {
				t.Errorf("closed with %v", err)
			}
		}
	})
}

// One request at a time, each of which the loop must notice by itself.
func TestTLSPingPong(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		dialTLS, _, _ := serveTLS(t, startLoops(t, 1, c))
		nc := dialTLS()
		buf := make([]byte, 5)
		for i := range 200 {
			io.WriteString(nc, "ping\n")
			if _, err := io.ReadFull(nc, buf); err != nil || string(buf) != "ping\n" {
				t.Fatalf("%d: got %q, %v", i, buf, err)
			}
		}
	})
}

func TestTLSSlowReader(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		dialTLS, _, _ := serveTLS(t, startLoops(t, 1, c))
		nc := dialTLS()
		line := append(bytes.Repeat([]byte("x"), 999), '\n')
		const lines = 20_000
		go func() {
			for range lines {
				nc.Write(line)
			}
			nc.CloseWrite()
		}()
		got, err := io.ReadAll(nc)
		if len(got) != lines*len(line) || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

// A record that is wrong ends the connection, and so does a client without TLS.
func TestTLSGarbage(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		dialTLS, addr, closings := serveTLS(t, startLoops(t, 1, c))
		nc := dialTLS()
		io.WriteString(nc, "hello\n")
		buf := make([]byte, 6)
		if _, err := io.ReadFull(nc, buf); err != nil {
			t.Fatal(err)
		}
		nc.NetConn().Write([]byte{23, 3, 3, 0, 4, 1, 2, 3, 4}) // no record of this session
		if _, err := io.ReadAll(nc); err == nil {
			t.Error("after a wrong record there was no error")
		}
		if err := <-closings; err == nil {
			t.Error("a wrong record closed without an error")
		}
		plain := dial(t, addr)
		io.WriteString(plain, "no hello\n")
		plain.SetReadDeadline(time.Now().Add(10 * time.Second))
		io.ReadAll(plain) // an alert, perhaps, and the end
	})
}
