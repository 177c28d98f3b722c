package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"cacherouter/admin"
	"cacherouter/fresh"
	"cacherouter/router"
)

// adminConfig says what the admin server shows, and to whom.
func (s *server) adminConfig(ctx context.Context, ln net.Listener) (admin.Config, error) {
	c := admin.Config{
		Name: s.cfg.routerName(), Router: shown{s.router, s.pool}, Loops: s.loops, HotKeys: s.hints.hotKeys, Placing: s.placing, History: s.history,
		Reload: func() error { return s.reload(ctx) }, Hosts: s.cfg.AdminHosts, Log: s.log,
		Unix: ln.Addr().Network() == "unix",
	}
	c.Local = c.Unix || admin.Loopback(ln.Addr().String())
	if s.records.slow != nil {
		c.Slow, c.SlowOver = s.records.slow, time.Duration(s.cfg.Log.Slow.Over)
	}
	c.Records = s.records.counts
	if s.members != nil {
		c.Membership = s.members.cluster
	}
	if s.cfg.AdminTokenFile != "" {
		token, err := adminToken(s.cfg.AdminTokenFile, s.log)
		if err != nil {
			return c, badField(err, "admin_token_file")
		}
		c.Token = token.Get
	}
	return c, nil
}

// shown is a router as the admin server asks it.
type shown struct {
	*router.Router
	pool *router.Pool
}

// Table returns the table in force.
func (s shown) Table() *router.Table { return s.pool.Table() }

// placing returns how keys are placed now.
func (s *server) placing() *admin.Placing {
	t := s.fixed.Load()
	if s.members != nil {
		t = s.members.shown.Load()
	}
	p := &admin.Placing{
		Table: &t.Table, Distribution: t.pool.Distribution, Digest: t.digest(), Exact: t.exact, Spans: t.placed.Spans(),
		Ring: strings.Contains(t.pool.Distribution, "ring") || strings.Contains(t.pool.Distribution, "ketama"),
	}
	for _, server := range t.pool.Servers {
		p.Weights = append(p.Weights, server.Weight)
	}
	return p
}

// minToken is how long a token has to be, in bytes.
const minToken = 16

// adminToken keeps the token that a file holds.
func adminToken(file string, log *slog.Logger) (*fresh.Value[string], error) {
	return fresh.New(log, func() (string, error) { return readToken(file) }, file)
}

// readToken reads a token: the first line of a file.
func readToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read token: %w", err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	token := string(bytes.TrimSpace(line))
	if len(token) < minToken {
		return "", fmt.Errorf("%s: line 1: a token of %d bytes: want at least %d", file, len(token), minToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("%s: line 1: a token has printable ASCII without spaces only", file)
		}
	}
	return token, nil
}
