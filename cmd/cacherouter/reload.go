package main

import (
	"context"
	"errors"
	"slices"
)

// reload takes over the servers and the distribution of the file, and opens the log of
// requests anew. A bad file changes nothing.
func (s *server) reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.records.reopen(s.log)
	cfg, err := s.load()
	if err != nil {
		s.log.Error("reload refused", "err", err)
		return err
	}
	if !slices.EqualFunc(s.cfg.served(), cfg.served(), func(a, b *poolConfig) bool { return a.name == b.name }) {
		err := errors.New("pools: to begin or to end a pool takes an upgrade, by SIGUSR2")
		s.log.Error("reload refused", "err", err)
		return err
	}
	if !slices.EqualFunc(s.cfg.Routes, cfg.Routes, func(a, b routeConfig) bool { a.line = b.line; return a == b }) {
		s.log.Warn("routes have changed, which takes an upgrade, by SIGUSR2")
	}
	for i, p := range cfg.served() {
		if err := s.pools[i].reload(ctx, p); err != nil {
			s.log.Error("reload refused", "err", err)
			return err
		}
	}
	return nil
}
