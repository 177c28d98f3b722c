//go:build linux

package protocols

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cacherouter/loadtest/process"
	"cacherouter/loadtest/selfsigned"
)

// stage is the running processes of one comparison.
type stage struct {
	config  Config
	dir     string
	cert    selfsigned.Certificate
	servers []*process.Server
	router  *process.Dual
	echo    *process.Dual
	unpin   func() // lets this process run where it could
}

// wrapper is what a plan's Wrap is.
type wrapper = func(net.Conn) (net.Conn, error)

// plain leaves a connection as it is.
func plain(conn net.Conn) (net.Conn, error) { return conn, nil }

// secure makes a connection a TLS client.
func (s *stage) secure(conn net.Conn) (net.Conn, error) {
	c := tls.Client(conn, &tls.Config{RootCAs: s.cert.Roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	return c, c.Handshake()
}

func (c Config) wants(name string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, name)
}

// setUp starts the servers. The stage must be torn down also after an error.
func setUp(ctx context.Context, c Config) (*stage, error) {
	s := &stage{config: c, unpin: func() {}}
	var err error
	if s.dir, err = os.MkdirTemp("", "loadtest-protocols-"); err != nil {
		return s, fmt.Errorf("cannot make a directory for the servers: %w", err)
	}
	if s.cert, err = selfsigned.Write(s.dir); err != nil {
		return s, err
	}
	for range serverCount {
		m, err := process.StartMemcached(ctx, s.dir, 1)
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, m)
	}
	if s.router, err = s.startRouter(ctx); err != nil {
		return s, err
	}
	if s.echo, err = s.startEcho(ctx); err != nil {
		return s, err
	}
	return s, s.pin()
}

func (s *stage) startRouter(ctx context.Context) (*process.Dual, error) {
	text := fmt.Sprintf("listen:\n  - 127.0.0.1:0\n  - {address: 127.0.0.1:0, tls: {cert: %q, key: %q}}\n"+
		"admin: 127.0.0.1:0\nloops: 1\npool:\n  servers:\n", s.cert.CertFile, s.cert.KeyFile)
	for _, m := range s.servers {
		text += "    - " + m.Addr + "\n"
	}
	file := filepath.Join(s.dir, "router.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("cannot configure the router: %w", err)
	}
	return process.StartDual(ctx, process.Command{
		Name: "cacherouter", Path: s.config.Router, Args: []string{"serve", "--config", file},
	})
}

func (s *stage) startEcho(ctx context.Context) (*process.Dual, error) {
	program := slices.Concat(s.config.Echo, []string{"--cert", s.cert.CertFile, "--key", s.cert.KeyFile})
	return process.StartDual(ctx, process.Command{Name: "echo server", Path: program[0], Args: program[1:]})
}

func (s *stage) pin() (err error) {
	var servers []int
	for _, m := range s.servers {
		servers = append(servers, m.ID())
	}
	s.unpin, err = s.config.Layout.Apply([]int{s.router.ID(), s.echo.ID()}, servers)
	return err
}

// tearDown stops everything at once: a memcached takes a second to notice.
func (s *stage) tearDown() {
	var stopping sync.WaitGroup
	for _, d := range []*process.Dual{s.router, s.echo} {
		if d != nil {
			stopping.Go(d.Stop)
		}
	}
	for _, m := range s.servers {
		stopping.Go(m.Stop)
	}
	stopping.Wait()
	s.unpin()
	os.RemoveAll(s.dir)
}
