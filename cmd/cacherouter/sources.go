package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/discover"
)

// dynamic names a field that finds servers while the router runs, "" if none does.
func (p *poolConfig) dynamic() string {
	switch {
	case p.File != "":
		return "file"
	case len(p.DNS) > 0:
		return "dns"
	case len(p.SRV) > 0:
		return "srv"
	case p.Announced:
		return "announced"
	}
	return ""
}

func (p *poolConfig) validateSources() error {
	if p.File != "" {
		if _, err := (discover.File{Path: p.File}).Look(context.Background()); err != nil {
			return badField(err, "pool", "file")
		}
	}
	for _, a := range p.DNS {
		if _, _, err := splitDNS(a); err != nil {
			return badField(err, "pool", "dns")
		}
	}
	for _, name := range p.SRV {
		if name == "" {
			return badField(errors.New("a name is empty"), "pool", "srv")
		}
	}
	if p.Resolver != "" {
		if err := checkHostPort(p.Resolver); err != nil {
			return badField(err, "pool", "resolver")
		}
	}
	return nil
}

// splitDNS splits the name and port of servers that DNS knows by address.
func splitDNS(a string) (name string, port uint16, err error) {
	name, text, err := net.SplitHostPort(a)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not host:port", a)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || name == "" {
		return "", 0, fmt.Errorf("%q is not host:port", a)
	}
	return name, uint16(n), nil
}

// static is the list of a configuration, which a reload replaces. Any goroutine may use it.
type static struct {
	servers atomic.Pointer[[]discover.Server]
	watcher *discover.Watcher
}

// Look returns the list.
func (s *static) Look(context.Context) (discover.Answer, error) {
	return discover.Answer{Servers: *s.servers.Load()}, nil
}

// set replaces the list.
func (s *static) set(servers []serverConfig) {
	list := found(servers)
	s.servers.Store(&list)
	if s.watcher != nil {
		s.watcher.Again()
	}
}

// found returns servers as sources name them.
func found(servers []serverConfig) []discover.Server {
	var all []discover.Server
	for _, s := range servers {
		all = append(all, discover.Server{Name: s.Name, Address: s.Address, Weight: s.Weight})
	}
	return all
}

// sources are all that name servers of a pool.
type sources struct {
	static    *static             // nil if the configuration lists none
	announced *discover.Announced // nil if announcements do not count
	watchers  []*discover.Watcher
}

// shortest is the least time between two looks at DNS, whatever it says, unless all are to
// be more frequent.
const shortest = 5 * time.Second

// newSources makes the sources of a pool. Where several name a server, the first in this
// order is believed: what the operator wrote, then DNS, then what anybody may have said.
func newSources(p *poolConfig, lists *listsConfig, prober membership.Prober, log *slog.Logger) *sources {
	s := new(sources)
	guard := discover.Guard{Max: lists.Max, Confirm: lists.Confirm, Over: time.Duration(lists.Over)}
	watch := func(name string, source discover.Source, guard discover.Guard) *discover.Watcher {
		every := time.Duration(lists.Every)
		w := &discover.Watcher{Name: name, Source: source, Guard: guard, Every: every, Shortest: min(every, shortest), Log: log}
		s.watchers = append(s.watchers, w)
		return w
	}
	if all := p.all(); len(all) > 0 {
		s.static = new(static)
		s.static.set(all)
		trusted := discover.Guard{Max: len(all) + 1<<16, Trusted: true, MaxShrink: 1000} // validated, and not by accident
		s.static.watcher = watch("servers", s.static, trusted)
	}
	if p.File != "" {
		trusted := guard
		trusted.Trusted = true
		watch("file "+p.File, discover.File{Path: p.File}, trusted)
	}
	for _, a := range p.DNS {
		name, port, _ := splitDNS(a) // validated
		watch("dns "+a, discover.DNS{Name: name, Port: port, Resolver: p.Resolver}, guard)
	}
	for _, name := range p.SRV {
		watch("srv "+name, discover.DNS{Name: name, Resolver: p.Resolver}, guard)
	}
	if p.Announced {
		s.announced = &discover.Announced{Prober: prober, Max: lists.Max, Keep: time.Duration(lists.Keep)}
		watch("announced", s.announced, guard)
	}
	return s
}
