package membership

import (
	"sync"

	"cacherouter/membership/health"
)

// reports collects what loops report until it is taken in. A loop must not wait for the
// state machines, so all it does here is add a few numbers up.
type reports struct {
	wake chan struct{}

	mu  sync.Mutex
	all map[string]health.Observation // guarded by mu: by server
}

func newReports() *reports {
	return &reports{wake: make(chan struct{}, 1), all: map[string]health.Observation{}}
}

// add adds a report to those before it, and asks for attention if it tells of failures.
func (r *reports) add(server string, o health.Observation) {
	r.mu.Lock()
	r.all[server] = r.all[server].Then(o)
	r.mu.Unlock()
	if o.Errors() > 0 {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// take returns what has been collected, nil for nothing.
func (r *reports) take() map[string]health.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return nil
	}
	all := r.all
	r.all = map[string]health.Observation{}
	return all
}
