package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cacherouter/handoff"
	"cacherouter/reload"

	"golang.org/x/sync/errgroup"
)

// obey follows signals until one says to stop, and then drains, or until another process has
// taken this one's place. Reloads and upgrades run in g, as they may take a while.
func (s *server) obey(ctx context.Context, g *errgroup.Group, signals <-chan os.Signal) {
	replaced := make(chan *handoff.Link, 1)
	upgrading := false
	for {
		select {
		case <-ctx.Done():
			s.closeAdmin()
			return
		case link := <-replaced:
			if upgrading = false; link != nil {
				s.retreat(ctx, link)
				return
			}
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				g.Go(func() error { s.reload(ctx, reload.Options{}); return nil })
			case sig == upgradeSignal && upgrading:
			case sig == upgradeSignal:
				upgrading = true
				g.Go(func() error { replaced <- s.upgrade(ctx); return nil })
			default:
				s.log.Info("draining", "signal", sig.String())
				s.drain(ctx, signals)
				return
			}
		}
	}
}

// upgrade returns the link to the process that has taken over; nil if none has, which is logged.
func (s *server) upgrade(ctx context.Context) *handoff.Link {
	s.reloading.Lock() // the new process has read the file by itself
	defer s.reloading.Unlock()
	link, err := s.succeed(ctx)
	if err != nil {
		s.log.Error("upgrade failed, this process goes on", "err", err)
	}
	s.over = link != nil
	return link
}

// drain lets load balancers see that this router leaves, then closes the listeners and
// waits for clients to be answered. A second signal ends the waiting.
func (s *server) drain(ctx context.Context, signals <-chan os.Signal) {
	if s.admin != nil {
		s.admin.SetReady(false)
	}
	signal.Ignore(syscall.SIGHUP)
	s.retire()
	select {
	case <-time.After(time.Duration(s.cfg.DrainDelay)):
	case <-signals:
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.cfg.DrainTimeout))
	defer cancel()
	hurried := make(chan struct{})
	go func() {
		defer close(hurried)
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-hurried }()
	if err := s.router.Drain(ctx); err != nil {
		s.log.Warn("drained", "err", err)
	} else {
		s.log.Info("drained")
	}
	s.leave()
	s.closeAdmin()
}
