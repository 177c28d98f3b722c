package reactor

import "fmt"

// newPoller makes the poller of an engine.
func newPoller(c Config) (poller, error) {
	switch c.Engine {
	case Portable:
		return newParker(), nil
	case "", Auto, Epoll:
		return newEpoll()
	case Uring:
		return newRingPoller(c)
	}
	return nil, fmt.Errorf("unknown engine %q", c.Engine)
}

// Usable returns why an engine cannot be used on this system, nil if it can.
func Usable(e Engine) error {
	p, err := newPoller(Config{Engine: e})
	if err != nil {
		return err
	}
	return p.close()
}
