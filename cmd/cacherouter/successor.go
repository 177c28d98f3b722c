package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"cacherouter/handoff"
	"cacherouter/router"
)

// What a process and its successor say to each other. The old one gives its sockets, and says
// begin. The new one asks it to leave the other routers when it is about to join them, under the
// same name and at the same address, and says ready when it accepts clients. From then on the old
// one gives its clients, each as soon as nothing is owed to it.
const (
	saysSocket = "socket"
	saysBegin  = "begin"
	saysPause  = "pause"
	saysPaused = "paused"
	saysReady  = "ready"
	saysClient = "client"
)

// givenSocket is the head of a socket's message.
type givenSocket struct{ Network, Address string }

// givenClient is the head of a client's.
type givenClient struct {
	Listener                 string
	Approved, Spoken, Binary bool
}

// successionTimeout is how long a successor may take to be ready: for its first server to be
// found, for example.
const successionTimeout = 2 * time.Minute

// succeed starts a process in this one's place, and returns the link to it when it accepts
// clients. Until then this one goes on as before, also when there is an error.
func (s *server) succeed(ctx context.Context) (*handoff.Link, error) {
	if s.program == "" {
		return nil, errors.New("this process cannot be replaced")
	}
	cmd, link, err := handoff.Start(s.program, os.Args[1:])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, successionTimeout)
	defer cancel()
	end := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer end()
	s.log.Info("a new process is to take over", "pid", cmd.Process.Pid, "program", s.program)
	if err = s.prepare(link); err == nil {
		return link, cmd.Process.Release()
	}
	link.Close()
	cancel() // in case it still lives
	err = died(err, cmd)
	return nil, errors.Join(err, s.resume())
}

// died says what has become of a successor.
func died(err error, cmd *exec.Cmd) error {
	if e := cmd.Wait(); e != nil {
		return fmt.Errorf("the new process has failed: %w", e)
	}
	return fmt.Errorf("the new process has ended: %w", err)
}

// prepare does what a successor asks for until it is ready.
func (s *server) prepare(link *handoff.Link) error {
	err := s.sockets.Each(func(network, address string, f *os.File) error {
		return tell(link, saysSocket, givenSocket{network, address}, nil, f)
	})
	if err != nil {
		return err
	}
	if err := link.Send(handoff.Message{Kind: saysBegin}); err != nil {
		return err
	}
	for {
		switch m, err := link.Receive(); {
		case err != nil:
			return err
		case m.Kind == saysReady:
			return nil
		case m.Kind == saysPause:
			if err := errors.Join(s.pause(), link.Send(handoff.Message{Kind: saysPaused})); err != nil {
				return err
			}
		}
	}
}

// pause leaves the other routers; resume returns to them.
func (s *server) pause() error {
	if !s.cfg.Membership.Enabled { // all pools share one gossip
		return nil
	}
	return s.pools()[0].members.cluster.Pause()
}

func (s *server) resume() error {
	if !s.cfg.Membership.Enabled {
		return nil
	}
	return s.pools()[0].members.cluster.Resume()
}

// retreat gives the clients to the successor, and returns when there are none any more, or when
// it has taken too long.
func (s *server) retreat(ctx context.Context, link *handoff.Link) {
	defer link.Close()
	s.sockets.Keep()
	s.closeAdmin()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.cfg.DrainTimeout))
	defer cancel()
	out := newOutbox()
	var sending sync.WaitGroup
	sending.Go(func() { s.giveClients(link, out) })
	err := s.router.Move(ctx, out.add)
	out.close()
	sending.Wait()
	if err = errors.Join(err, link.CloseSending()); err != nil {
		s.log.Warn("replaced", "err", err)
	} else {
		s.log.Info("replaced")
	}
}

func (s *server) giveClients(link *handoff.Link, out *outbox) {
	var failed error
	given, lost := 0, 0
	for c, ok := out.next(); ok; c, ok = out.next() {
		err := tell(link, saysClient, givenClient{c.Listener, c.Approved, c.Spoken, c.Binary}, c.Rest, c.File)
		c.File.Close()
		if err != nil {
			failed = err
			lost++
			continue
		}
		given++
	}
	if s.log.Info("clients given to the new process", "clients", given); lost > 0 {
		s.log.Warn("clients lost, as the new process does not take them", "clients", lost, "err", failed)
	}
}

// outbox is clients on their way out. Any goroutine may add to it, and need not wait.
type outbox struct {
	mu     sync.Mutex
	cond   sync.Cond
	all    []router.Client // guarded by mu
	closed bool            // guarded by mu
}

func newOutbox() *outbox {
	o := new(outbox)
	o.cond.L = &o.mu
	return o
}

func (o *outbox) add(c router.Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed { // too late
		c.File.Close()
		return
	}
	o.all = append(o.all, c)
	o.cond.Signal()
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Signal()
}

// next waits for a client; false means that no more come.
func (o *outbox) next() (c router.Client, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) == 0 && !o.closed {
		o.cond.Wait()
	}
	if len(o.all) == 0 {
		return c, false
	}
	c = o.all[0]
	o.all = o.all[1:]
	return c, true
}

// tell sends a message with a head.
func tell(link *handoff.Link, kind string, head any, body []byte, f *os.File) error {
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return link.Send(handoff.Message{Kind: kind, Head: b, Body: body, File: f})
}

// succession takes over what there is to take over: sockets of a process that started this one, or
// of systemd.
func (s *server) succession() (err error) {
	if err := giveActivated(&s.sockets); err != nil {
		return err
	}
	link, err := handoff.Predecessor()
	if link == nil {
		return err
	}
	for {
		m, err := link.Receive()
		if err != nil {
			return errors.Join(fmt.Errorf("cannot take over from the old process: %w", err), link.Close())
		}
		switch m.Kind {
		case saysSocket:
			var head givenSocket
			if err := errors.Join(json.Unmarshal(m.Head, &head), s.sockets.Give(head.Network, head.Address, m.File)); err != nil {
				return errors.Join(fmt.Errorf("cannot take over from the old process: %w", err), link.Close())
			}
		case saysBegin:
			s.before = link
			return nil
		}
	}
}

// release asks the old process to leave the other routers, if there are any, and returns when it
// has.
func (s *server) release() error {
	if s.before == nil || s.cfg.Gossip.Bind == "" {
		return nil
	}
	if err := s.before.Send(handoff.Message{Kind: saysPause}); err != nil {
		return err
	}
	if m, err := s.before.Receive(); err != nil || m.Kind != saysPaused {
		return fmt.Errorf("the old process has not left the other routers: %q, %w", m.Kind, err)
	}
	return nil
}

// adopt says that this process is ready, and serves the clients of the old one until it has given
// them all.
func (s *server) adopt() {
	link := s.before
	defer link.Close()
	if err := link.Send(handoff.Message{Kind: saysReady}); err != nil {
		s.log.Warn("the old process is gone", "err", err)
		return
	}
	adopted, refused := 0, 0
	for {
		m, err := link.Receive()
		if err != nil {
			s.log.Info("clients taken over from the old process", "clients", adopted)
			if refused > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				s.log.Warn("clients of the old process lost", "clients", refused, "err", err)
			}
			return
		}
		if err := s.adoptOne(m); err != nil {
			s.quiet.Warn("client of the old process lost", "err", err)
			refused++
			continue
		}
		adopted++
	}
}

func (s *server) adoptOne(m handoff.Message) error {
	var head givenClient
	if err := json.Unmarshal(m.Head, &head); err != nil || m.File == nil {
		return fmt.Errorf("bad message %q: %w", m.Kind, err)
	}
	return s.router.Adopt(router.Client{
		File: m.File, Rest: m.Body, Listener: head.Listener,
		Approved: head.Approved, Spoken: head.Spoken, Binary: head.Binary,
	})
}
