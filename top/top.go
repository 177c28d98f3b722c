// Package top shows what a router says about itself in a terminal: what the page shows, for
// those who have only ssh. It draws whole screens from the last event of the JSON API, once a
// second, and keeps nothing else: drawing is a function of a View, and the terminal is one file.
package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"cacherouter/admin"
)

// Config says what is shown where.
type Config struct {
	Ask admin.Client
	// Look is what the terminal can show.
	Look Look
	// Zone is that of the times that are shown.
	Zone *time.Location
}

const (
	// again is the time until the router is asked again if it did not answer.
	again = time.Second
	// goodWindow is what rates have to be taken over to be shown alone, in seconds: the first
	// ones after a while are of a tenth.
	goodWindow = 0.5
)

// news is what the router said, or why it said nothing.
type news struct {
	event   *admin.Event
	changes []admin.Change
	err     error
}

// follow sends what the router says, and why it says nothing, until the context ends.
func follow(ctx context.Context, ask admin.Client, out chan<- news) {
	send := func(n news) error {
		select {
		case out <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for ctx.Err() == nil {
		var changes admin.Changes
		err := ask.Follow(ctx, func(e *admin.Event) (err error) {
			if e.Overview.ChangesSeq != changes.Seq {
				if changes, err = ask.Changes(ctx); err != nil {
					return err
				}
			}
			return send(news{event: e, changes: changes.Changes})
		})
		if send(news{err: err}) != nil {
			return
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// Once writes what there is to see at this moment, in lines of at most width columns. It takes
// up to a second.
func (c Config) Once(ctx context.Context, out io.Writer, width int) error {
	ctx, cancel := context.WithCancel(ctx)
	feed := make(chan news)
	var following sync.WaitGroup
	following.Go(func() { follow(ctx, c.Ask, feed) })
	defer following.Wait()
	defer cancel()
	v := c.view()
	for v.Event == nil || v.Event.Overview.Window < goodWindow {
		select {
		case n := <-feed:
			if n.err != nil {
				return n.err
			}
			v.take(n, time.Now())
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the router at %s: %w", c.Ask.Address, ctx.Err())
		}
	}
	v.Now = v.Heard.In(c.Zone)
	_, err := io.WriteString(out, strings.Join(v.Lines(width, 0), "\n")+"\n")
	return err
}

func (c Config) view() *View { return &View{Address: c.Ask.Address, Look: c.Look} }

// take takes in what the router said at a time.
func (v *View) take(n news, now time.Time) {
	v.Err = n.err
	if n.err == nil {
		v.Event, v.Changes, v.Heard = n.event, n.changes, now
	}
}

// Run shows what there is to see on the process's terminal until somebody presses q or Ctrl-C
// or the context ends, and leaves the terminal as it was. A router that does not answer at
// once is an error; later on it is shown, and asked again.
func (c Config) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	feed, pressed := make(chan news), make(chan key)
	s := new(screen)
	defer s.close() // when nobody reads from it any more: it would take what the shell should get
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.closedByPanic(func() { follow(ctx, c.Ask, feed) }) })
	v := c.view()
	v.Live = true
	select {
	case n := <-feed:
		if n.err != nil {
			return n.err
		}
		v.take(n, time.Now())
	case <-ctx.Done():
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	running.Go(func() { s.closedByPanic(func() { s.keys(ctx, pressed) }) })
	return c.show(ctx, s, v, feed, pressed)
}

// closedByPanic calls a function. One that panics does not return to who would close the
// screen, on which the panic would be lost.
func (s *screen) closedByPanic(f func()) {
	returned := false
	defer func() {
		if !returned {
			s.close()
		}
	}()
	f()
	returned = true
}

// show draws after everything that happens, and each second, as times go on.
func (c Config) show(ctx context.Context, s *screen, v *View, feed <-chan news, pressed <-chan key) error {
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		v.Now = time.Now().In(c.Zone)
		if err := s.draw(v); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case n := <-feed:
			v.take(n, time.Now())
			clock.Reset(time.Second)
		case <-s.resized:
		case <-clock.C:
		case k := <-pressed:
			if k == quit {
				return nil
			}
			v.press(k)
		}
	}
}

// press does what a key asks for.
func (v *View) press(k key) {
	switch k {
	case next:
		v.Focus, v.Scroll = v.Focus.step(1), 0
	case before:
		v.Focus, v.Scroll = v.Focus.step(-1), 0
	case up:
		v.Scroll--
	case down:
		v.Scroll++
	case pageUp:
		v.Scroll -= v.room
	case pageDown:
		v.Scroll += v.room
	}
}
