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
	"cacherouter/memproto"
	"cacherouter/reload"
	"cacherouter/router"
)

// adminConfig says what the admin server shows, and to whom.
func (s *server) adminConfig(ctx context.Context, ln net.Listener) (admin.Config, error) {
	first, pools := s.shown()
	c := admin.Config{
		Name: s.cfg.routerName(), Loops: s.loops, Router: first.Router, Membership: first.Membership, HotKeys: first.HotKeys, Placing: first.Placing,
		Pool: first.Name, Pools: pools,
		History: s.history, Reload: func(o reload.Options) *reload.Report { return s.reload(ctx, o) }, Reloads: s.reloads.State, Hosts: s.cfg.AdminHosts, Log: s.log,
		Unix: ln.Addr().Network() == "unix",
	}
	engine, _ := s.router.Engine()
	c.Engine = string(engine)
	c.Local = c.Unix || admin.Loopback(ln.Addr().String())
	if s.records.slow != nil {
		c.Slow, c.SlowOver = s.records.slow, time.Duration(s.cfg.Log.Slow.Over)
	}
	c.Records = s.records.counts
	c.Target, c.Quotas = s.router.Target, s.router.Quotas
	if s.cfg.AdminTokenFile != "" {
		token, err := adminToken(s.cfg.AdminTokenFile, s.log)
		if err != nil {
			return c, badField(err, "admin_token_file")
		}
		c.Token = token.Get
	}
	return c, nil
}

// shown returns the pools as the admin server shows them: the first one for all, and each by
// itself if there are several.
func (s *server) shown() (first admin.Pool, pools []admin.Pool) {
	all := s.pools()
	first = all[0].shown(whole{s.router, all[0]})
	if len(all) == 1 {
		first.Name = ""
		return first, nil
	}
	for _, p := range all {
		pools = append(pools, p.shown(alone{whole{s.router, p}}))
	}
	return first, pools
}

// whole is a router as the admin server asks it, with the table of one of its pools.
type whole struct {
	*router.Router
	p *served
}

// Table returns the table in force.
func (w whole) Table() *router.Table { return w.p.pool.Load().Table() }

// alone is what is about one pool of a router that has several.
type alone struct{ whole }

// Snapshots returns the pool's part of the state of every loop. What clients have asked it
// is told by its replies.
func (a alone) Snapshots(ctx context.Context) ([]router.Snapshot, error) {
	loops, err := a.Router.Snapshots(ctx)
	for i := range loops {
		s := &loops[i]
		s.PoolSnapshot, s.Pools = s.Of(a.p.name), nil
		s.Requests = make([]uint64, memproto.NumVerbs)
		for v := range s.Replies {
			for _, n := range s.Replies[v] {
				s.Requests[v] += n
			}
		}
	}
	return loops, err
}

// shown returns the pool as the admin server shows it.
func (p *served) shown(r admin.Router) admin.Pool {
	out := admin.Pool{Name: p.name, Router: r, HotKeys: p.hints.hotKeys, Placing: p.placing}
	if p.members != nil {
		out.Membership = p.members.cluster
	}
	return out
}

// placing returns how keys are placed now.
func (p *served) placing() *admin.Placing {
	t := p.inForce()
	out := &admin.Placing{
		Table: &t.Table, Distribution: t.pool.Distribution, Digest: t.digest(), Exact: t.exact, Spans: t.placed.Spans(),
		Ring: strings.Contains(t.pool.Distribution, "ring") || strings.Contains(t.pool.Distribution, "ketama"),
	}
	for _, server := range t.pool.Servers {
		out.Weights = append(out.Weights, server.Weight)
	}
	return out
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
