package reactor

import "time"

// parker is the poller of a loop whose connections are all served by goroutines: events
// come as posted functions, so there is nothing to poll, only to wait.
type parker struct {
	c chan struct{}
	t *time.Timer // stopped between polls
}

func newParker() *parker {
	p := &parker{c: make(chan struct{}, 1), t: time.NewTimer(time.Hour)}
	p.t.Stop()
	return p
}

func (p *parker) begin()        {}
func (p *parker) submit()       {}
func (p *parker) rest(int)      {}
func (p *parker) calls() uint64 { return 0 }

func (p *parker) poll(_ *Loop, d time.Duration) (int, error) {
	if d <= 0 {
		return 0, nil
	}
	p.t.Reset(d)
	select {
	case <-p.c:
		p.t.Stop()
	case <-p.t.C:
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
