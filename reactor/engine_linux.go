package reactor

import "fmt"

// automatic are the engines that Auto stands for, the best first.
var automatic = []Engine{Uring, Epoll}

// newPoller makes the poller of an engine.
func newPoller(c Config) (poller, error) {
	switch c.Engine {
	case Portable:
		return newParker(), nil
	case Epoll:
		return newEpoll()
	case Uring:
		return newRingPoller(c)
	}
	return nil, fmt.Errorf("unknown engine %q", c.Engine)
}
