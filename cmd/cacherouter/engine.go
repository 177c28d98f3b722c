package main

import (
	"fmt"

	"cacherouter/reactor"
)

// engine returns the engine of the configuration, or auto if it cannot be used here. Auto is not tried, as
// the kernel takes a moment to give back what a ring counts towards RLIMIT_MEMLOCK.
func (s *server) engine() reactor.Engine {
	if s.cfg.Engine == reactor.Auto {
		return reactor.Auto
	}
	if err := reactor.Usable(s.cfg.Engine); err != nil {
		s.log.Warn("engine cannot be used, taking auto", "engine", s.cfg.Engine, "err", err)
		return reactor.Auto
	}
	return s.cfg.Engine
}

// sayEngine logs which engine the loops have, and why it is not io_uring where that was left to the
// router.
func (s *server) sayEngine() {
	e, refused := s.router.Engine()
	said := []any{"loops", s.loops, "engine", e}
	if refused != nil && s.cfg.Engine == reactor.Auto {
		said = append(said, "err", refused)
	}
	s.quiet.Info("event loops made", said...)
}

// engineHere says in a line which engine a router on this host would have.
func (c *config) engineHere() string {
	chosen, refused, err := reactor.Choice(c.Engine)
	switch {
	case err != nil:
		chosen, _, _ = reactor.Choice(reactor.Auto)
		refused = err
	case c.Engine == chosen:
		return fmt.Sprintf("engine %s", chosen)
	}
	here := fmt.Sprintf("engine %s, which is %s on this host", c.Engine, chosen)
	if refused != nil {
		here += ": " + refused.Error()
	}
	return here
}
