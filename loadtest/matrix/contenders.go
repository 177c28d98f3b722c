//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cacherouter/loadtest/process"
)

// Contenders that others are compared with.
const (
	Memcached  = "memcached" // one of the servers, without a proxy
	Nutcracker = "nutcracker"
	HAProxy    = "haproxy" // in front of one server
	MCProxy    = "mcproxy"
	Epoll      = "epoll"
	EpollPlain = "epoll-plain" // without coalescing, bound, hot keys and membership
	Uring      = "uring"
	UringPlain = "uring-plain"
	Portable   = "portable"
)

func contenderNames() []string {
	return []string{Memcached, Nutcracker, HAProxy, MCProxy, Epoll, EpollPlain, Uring, UringPlain, Portable}
}

// contender is a target of the load and the process whose cost counts.
type contender struct {
	name   string
	server *process.Server
}

// stage is the running servers.
type stage struct {
	config     Config
	dir        string
	servers    []*process.Server
	contenders []contender
	unpin      func() // lets this process run where it could
}

const serverCount = 4

// setUp starts servers and contenders. Proxies that are not installed are left out, and told. The stage must be torn
// down also after an error.
func setUp(ctx context.Context, c Config) (*stage, error) {
	s := &stage{config: c, unpin: func() {}}
	var err error
	if s.dir, err = makeDir(); err != nil {
		return s, err
	}
	for range serverCount {
		m, err := process.StartMemcached(ctx, s.dir, 1)
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, m)
	}
	for _, name := range contenderNames() {
		if !c.wants(name, contenderNames()) || name == MCProxy && c.MCProxy == "" {
			continue
		}
		server, err := s.start(ctx, name)
		if errors.Is(err, process.ErrNotInstalled) && name != Epoll {
			c.say("%s is left out: %v", name, err)
			continue
		}
		if err != nil {
			return s, err
		}
		s.contenders = append(s.contenders, contender{name, server})
	}
	return s, s.pin()
}

func (s *stage) start(ctx context.Context, name string) (*process.Server, error) {
	backends := addresses(s.servers)
	switch name {
	case Memcached:
		return s.servers[0], nil
	case Nutcracker:
		return process.StartNutcracker(ctx, s.dir, backends)
	case HAProxy:
		return process.StartHAProxy(ctx, s.dir, backends[0])
	case MCProxy:
		return process.StartMCProxy(ctx, s.dir, s.config.MCProxy, backends)
	}
	engine, plain := strings.CutSuffix(name, "-plain")
	args := []string{"--loops", "1", "--engine", engine}
	if plain {
		file := filepath.Join(s.dir, name+".yml")
		text := "pool:\n  servers: [" + strings.Join(backends, ", ") + "]\n  coalesce: off\n  bound: {spill: none}\n  hot: {enabled: false}\nmembership: {enabled: false}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("cannot start %s: %w", name, err)
		}
		args = append(args, "--config", file)
	}
	return process.StartRouter(ctx, s.config.Router, backends, args...)
}

func addresses(servers []*process.Server) (all []string) {
	for _, m := range servers {
		all = append(all, m.Addr)
	}
	return all
}

func (s *stage) names() (all []string) {
	for _, x := range s.contenders {
		all = append(all, x.name)
	}
	return all
}

func (s *stage) pin() (err error) {
	var proxies, servers []int
	for _, m := range s.servers {
		servers = append(servers, m.ID())
	}
	for _, c := range s.contenders {
		if c.name != Memcached {
			proxies = append(proxies, c.server.ID())
		}
	}
	s.unpin, err = s.config.Layout.Apply(proxies, servers)
	return err
}

// tearDown stops everything at once: a memcached takes a second to notice.
func (s *stage) tearDown() {
	var stopping sync.WaitGroup
	for _, c := range s.contenders {
		stopping.Go(c.server.Stop)
	}
	for _, m := range s.servers {
		stopping.Go(m.Stop)
	}
	stopping.Wait()
	s.unpin()
	os.RemoveAll(s.dir)
}
