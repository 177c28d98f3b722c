//go:build linux

package echo

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/selfsigned"
	"cacherouter/loadtest/workload"
)

var line = regexp.MustCompile(`^msg=listening network=tcp addr=(127\.0\.0\.1:\d+) tls=(true|false)\n$`)

// start serves a plan and returns its addresses. The server ends with the test.
func start(t *testing.T, p load.Plan, c selfsigned.Certificate) (plain, secure string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Config{Plan: p, CertFile: c.CertFile, KeyFile: c.KeyFile, Out: out})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	in := bufio.NewReader(said)
	for _, to := range []struct {
		addr *string
		tls  string
	}{{&plain, "false"}, {&secure, "true"}} {
		text, err := in.ReadString('\n')
		found := line.FindStringSubmatch(text)
		if err != nil || found == nil || found[2] != to.tls {
			t.Fatalf("server says %q, %v", text, err)
		}
		*to.addr = found[1]
	}
	return plain, secure
}

func TestEveryAnswerIsAHitInTheClearAndOverTLS(t *testing.T) {
	c, err := selfsigned.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{100, 40_000} {
		p := load.DefaultPlan("x")
		p.Connections, p.Pipeline, p.Keys, p.ValueSize = 5, 7, 50, workload.Fixed(size)
		plain, secure := start(t, p, c)
		wrap := func(conn net.Conn) (net.Conn, error) {
			client := tls.Client(conn, &tls.Config{RootCAs: c.Roots, ServerName: "127.0.0.1"})
			return client, client.Handshake()
		}
		for target, wrap := range map[string]func(net.Conn) (net.Conn, error){plain: nil, secure: wrap} {
			p.Target, p.Wrap = target, wrap
			s, err := load.Dial(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), load.Extent{Requests: 1000})
			if err != nil || r.Hits != r.Gets || r.Answered() != 1000 {
				t.Errorf("size %d, counts %+v, %v", size, r.Counts, err)
			}
		}
	}
}

func TestAClientThatAsksForSomethingElseIsClosed(t *testing.T) {
	c, err := selfsigned.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := start(t, load.DefaultPlan("x"), c)
	conn, err := net.Dial("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "flush_all\r\n")
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it was answered")
	}
}

func TestServeSaysWhatFailed(t *testing.T) {
	err := Serve(t.Context(), Config{Plan: load.DefaultPlan("x"), CertFile: "/none", KeyFile: "/none"})
	if err == nil || !strings.Contains(err.Error(), "cannot use certificate") {
		t.Errorf("error is %v", err)
	}
	if err := Serve(t.Context(), Config{}); err == nil {
		t.Error("no plan was served")
	}
}
