package reactor

import (
	"errors"
	"slices"
)

// Engine is a way to serve sockets. The handlers cannot tell them apart.
type Engine string

// Engines. The zero value is Auto.
const (
	// Auto is Uring where the system lets us and it is the cheaper one (from Linux 6.12 on), else
	// Epoll where there is that, and else Portable.
	Auto Engine = "auto"
	// Uring waits, receives and sends through Linux's io_uring.
	Uring Engine = "uring"
	// Epoll waits in epoll and reads and writes by system calls.
	Epoll Engine = "epoll"
	// Portable makes every connection a net.Conn with goroutines.
	Portable Engine = "portable"
)

// Known reports whether e is one of the engines above, whether it works here or not.
func (e Engine) Known() bool { return slices.Contains(engines, e) || e == Auto }

var engines = []Engine{Epoll, Uring, Portable}

// Engines returns those that can be used on this system, Auto aside.
func Engines() (usable []Engine) {
	for _, e := range engines {
		if Usable(e) == nil {
			usable = append(usable, e)
		}
	}
	return usable
}

// Usable returns why an engine cannot be used on this system, nil if it can.
func Usable(e Engine) error {
	_, _, err := Choice(e)
	return err
}

// Choice returns what [Loop.Engine] of a loop would on this system, or why an engine cannot be
// used.
func Choice(e Engine) (chosen Engine, refused, err error) {
	l, err := NewLoop(Config{Engine: e})
	if err != nil {
		return "", nil, err
	}
	return l.engine, l.refused, l.poller.close()
}

// NewLoops returns n loops that work alike and that [Loop.Run] sets going. With Auto the choice is
// made here, for all of them: if a ring fails, be it the last one, none is used. Then
// [Loop.Engine] says why. An error says why of each engine that was tried.
func NewLoops(n int, c Config) ([]*Loop, error) {
	tried := []Engine{c.Engine}
	if c.Engine == "" || c.Engine == Auto {
		tried, c.auto = automatic, true
	}
	loops, err := firstUsable(tried, func(e Engine) ([]*Loop, error) {
		c.Engine = e
		return newLoops(n, func() (poller, error) { return newPoller(c) })
	})
	for _, l := range loops {
		l.spare = c.Spare
	}
	return loops, err
}

// firstUsable returns the loops of the first engine that makes them.
func firstUsable(tried []Engine, make func(Engine) ([]*Loop, error)) ([]*Loop, error) {
	var refused []error
	for _, e := range tried {
		loops, err := make(e)
		if err == nil {
			for _, l := range loops {
				l.engine, l.refused = e, errors.Join(refused...)
			}
			return loops, nil
		}
		refused = append(refused, err)
	}
	return nil, errors.Join(refused...)
}

// newLoops makes n loops, or none.
func newLoops(n int, newPoller func() (poller, error)) (loops []*Loop, err error) {
	for range n {
		p, err := newPoller()
		if err != nil {
			for _, l := range loops {
				l.poller.close()
			}
			return nil, err
		}
		loops = append(loops, newLoop(p))
	}
	return loops, nil
}

// Engine returns how the loop serves sockets, which is not Auto, and why not by what Auto would
// have taken rather; nil if there is no such reason. Any goroutine may ask.
func (l *Loop) Engine() (e Engine, refused error) { return l.engine, l.refused }
