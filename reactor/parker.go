package reactor

import "time"

// parker is the poller of a loop whose connections are all served by goroutines: events
// come as posted functions, so there is nothing to poll, only to wait.
type parker struct{ c chan struct{} }

func newParker() *parker { return &parker{c: make(chan struct{}, 1)} }

func (p *parker) poll(_ *Loop, d time.Duration) (int, error) {
	if d <= 0 {
		return 0, nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.c:
	case <-t.C:
	}
	return 0, nil
}

func (p *parker) wake() {
	select {
	case p.c <- struct{}{}:
	default:
	}
}

func (p *parker) close() error { return nil }
