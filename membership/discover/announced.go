package discover

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Prober asks an address whether a memcached is there.
type Prober interface {
	Probe(ctx context.Context, address string) error
}

// Announced is a source of servers that agents beside them announce. An announcement is
// only a hint where to look: a server counts when it has answered as memcached, and one
// whose agent falls silent stays for Keep, as the agent may be what died. The zero value
// of a number means its default. Announce may be called by any goroutine.
type Announced struct {
	Prober Prober
	// Max is how many servers are kept; default 1,000. Those that have answered stay; the
	// others' places are shared fairly among those who announce.
	Max int
	// Keep is how long a server stays after its last announcement; default 10 min.
	Keep time.Duration
	// Timeout bounds the time that a server may take to answer; default 250 ms.
	Timeout time.Duration

	mu       sync.Mutex
	servers  map[string]*announced // guarded by mu
	rejected uint64                // guarded by mu
}

type announced struct {
	Server
	by       string // who announced it first
	seen     time.Time
	tried    time.Time // when last, if it has not answered
	answered bool
}

// Announce takes in that from announces a server, and reports whether it was taken: it is
// not if it makes no sense or there are too many.
func (a *Announced) Announce(from string, s Server, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if check(s.Name, s.Address) != nil || s.Weight < 1 || s.Weight > maxWeight || len(s.Name) > 255 {
		a.rejected++
		return false
	}
	if a.servers == nil {
		a.servers = map[string]*announced{}
	}
	known := a.servers[s.Name]
	if known == nil {
		if !a.makeRoom(from) {
			a.rejected++
			return false
		}
		known = &announced{by: from}
		a.servers[s.Name] = known
	}
	// A name that changes its address has to answer there, too.
	known.answered = known.answered && known.Address == s.Address
	known.Server, known.seen = s, now
	return true
}

// makeRoom reports whether there is a place for one more server that from announces. If
// all are taken, whoever has most that have not answered gives one up, unless that is from:
// so nobody keeps others out by announcing thousands that do not exist.
func (a *Announced) makeRoom(from string) bool {
	if len(a.servers) < cmp.Or(a.Max, 1000) {
		return true
	}
	places, most := map[string]int{}, ""
	for _, s := range a.servers {
		if !s.answered {
			if places[s.by]++; places[s.by] > places[most] {
				most = s.by
			}
		}
	}
	if places[most] <= places[from]+1 {
		return false
	}
	for name, s := range a.servers {
		if !s.answered && s.by == most {
			delete(a.servers, name)
			a.rejected++
			break
		}
	}
	return true
}

// Rejected returns how many announcements were not taken, or given up for others.
func (a *Announced) Rejected() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rejected
}

const (
	// probesAtOnce bounds how many unknown addresses are tried at the same time, and
	// probesPerLook how many in one look: however many are silent, it does not take long.
	probesAtOnce  = 32
	probesPerLook = 256
)

// Look probes servers that have not answered yet, and returns those that have.
func (a *Announced) Look(ctx context.Context) (Answer, error) {
	a.expire(time.Now())
	a.probe(ctx, a.candidates(time.Now()))
	return Answer{Servers: a.list()}, ctx.Err()
}

// candidates returns the servers to try, those tried longest ago first.
func (a *Announced) candidates(now time.Time) []Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*announced
	for _, s := range a.servers {
		if !s.answered {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *announced) int {
		return cmp.Or(x.tried.Compare(y.tried), strings.Compare(x.Name, y.Name))
	})
	all = all[:min(len(all), probesPerLook)]
	servers := make([]Server, len(all))
	for i, s := range all {
		s.tried, servers[i] = now, s.Server
	}
	return servers
}

func (a *Announced) expire(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, s := range a.servers {
		if now.Sub(s.seen) > cmp.Or(a.Keep, 10*time.Minute) {
			delete(a.servers, name)
		}
	}
}

// list returns the servers that have answered.
func (a *Announced) list() []Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Server
	for _, s := range a.servers {
		if s.answered {
			all = append(all, s.Server)
		}
	}
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (a *Announced) probe(ctx context.Context, servers []Server) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for _, s := range servers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.Timeout, 250*time.Millisecond))
			defer cancel()
			if a.Prober.Probe(ctx, s.Address) == nil {
				a.answered(s)
			}
		})
	}
	wg.Wait()
}

// answered notes that a server has, unless it was announced elsewhere meanwhile.
func (a *Announced) answered(s Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.servers[s.Name]; known != nil && known.Server == s {
		known.answered = true
	}
}
