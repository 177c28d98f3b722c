package hotkey

import (
	"sync"
	"time"
)

// Peers knows what other routers have told of their hottest keys. The zero value knows
// nothing and is ready for use. All methods may be called concurrently. Times are
// measured from any fixed instant.
type Peers struct {
	mu   sync.Mutex // guards told
	told map[string]told
}

// told is what one router has told last.
type told struct {
	hints []Hint
	at    time.Duration
}

const (
	maxPeers  = 256
	hintsLast = 10 * time.Second // as long as a key takes to cool
)

// Heard takes in what a router has told, in place of what it told before. The hints are
// kept and must not be changed. Of more than 256 routers at a time it forgets one: what
// others tell must not take more memory than that.
func (p *Peers) Heard(router string, hints []Hint, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil {
		p.told = make(map[string]told)
	}
	if _, known := p.told[router]; !known && len(p.told) >= maxPeers {
		delete(p.told, p.oldest())
	}
	p.told[router] = told{hints, now}
}

func (p *Peers) oldest() (name string) {
	first := true
	for router, t := range p.told {
		if first || t.at < p.told[name].at {
			name, first = router, false
		}
	}
	return name
}

// Gone forgets a router.
func (p *Peers) Gone(router string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, router)
}

// Elsewhere is what other routers say of a key.
type Elsewhere struct {
	Routers int     // for which it is hot or severe
	Rate    float64 // requests a second, through all that have told of it
}

// Join says of each key of a report what is known of it elsewhere. What a router has
// told is good for 10 s.
func (p *Peers) Join(r *Report, now time.Duration) {
	all := p.sum(now)
	for i := range r.Keys {
		r.Keys[i].Elsewhere = all[r.Keys[i].Hash]
	}
	for i := range r.ByBytes {
		r.ByBytes[i].Elsewhere = all[r.ByBytes[i].Hash]
	}
}

func (p *Peers) sum(now time.Duration) map[uint64]Elsewhere {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[uint64]Elsewhere)
	for router, t := range p.told {
		if now-t.at >= hintsLast {
			delete(p.told, router)
			continue
		}
		for _, h := range t.hints {
			e := all[h.Hash]
			e.Rate += float64(h.Rate)
			if h.Level != Cold {
				e.Routers++
			}
			all[h.Hash] = e
		}
	}
	return all
}
