//go:build linux

// Package echo is the least that a Go server over crypto/tls does for a load: it reads, writes as
// many bytes as a cache would answer, and has no other server behind it. What a router costs over
// TLS is compared with it. Like most Go servers it gives each connection a goroutine.
package echo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"

	"cacherouter/loadtest/load"
)

// Config describes the server. All fields must be set.
type Config struct {
	Plan              load.Plan // what will be asked; its target does not matter, its protocol must be text
	CertFile, KeyFile string    // PEM
	Out               io.Writer // told the addresses, in the words of a router's log
}

// Serve answers on a plain and a TLS port of the loopback, each of its own choice, until ctx ends.
// It does not wait for its connections.
func Serve(ctx context.Context, c Config) error {
	answers, err := load.NewAnswers(c.Plan)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("cannot use certificate: %w", err)
	}
	for _, secure := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("cannot listen: %w", err)
		}
		defer l.Close()
		fmt.Fprintf(c.Out, "msg=listening network=tcp addr=%s tls=%t\n", l.Addr(), secure)
		if secure {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		}
		go accept(l, answers)
	}
	<-ctx.Done()
	return nil
}

func accept(l net.Listener, a *load.Answers) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go converse(conn, a, make([]byte, 16<<10+2*a.Longest()))
	}
}

// converse answers until the client leaves or asks what no load does. Buf must hold any request.
func converse(conn net.Conn, a *load.Answers, buf []byte) {
	defer conn.Close()
	held, out := 0, []byte(nil)
	for {
		n, err := conn.Read(buf[held:])
		if err != nil {
			return
		}
		held += n
		var taken int
		if out, taken, err = a.Append(out[:0], buf[:held]); err != nil {
			return
		}
		held = copy(buf, buf[taken:held])
		if len(out) == 0 {
			continue
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}
