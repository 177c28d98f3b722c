package accesslog

import (
	"log/slog"
	"sync"

	"cacherouter/router"
)

// Slow remembers the last slow requests, and logs each. Any goroutine may use it.
type Slow struct {
	log *slog.Logger

	mu   sync.Mutex
	last []Entry // guarded by mu: a ring
	next int     // guarded by mu: place of the oldest, or behind the last
}

// NewSlow returns a memory of so many requests, at least 1.
func NewSlow(keep int, log *slog.Logger) *Slow {
	return &Slow{log: log, last: make([]Entry, 0, keep)}
}

// Take implements [Sink].
func (s *Slow) Take(records []router.Record) {
	for i := range records {
		if records[i].Slow {
			e := EntryOf(&records[i])
			s.add(e)
			s.log.Warn("slow request", "client", e.Client, "verb", e.Verb, "key", e.Key, "keys", e.Keys, "pool", e.Pool, "server", e.Server,
				"decided", e.Decided, "outcome", e.Outcome, "took", records[i].Took,
				"sent", records[i].Sent, "first", records[i].First, "answered", records[i].Answered)
		}
	}
}

func (s *Slow) add(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) < cap(s.last) {
		s.last = append(s.last, e)
		return
	}
	s.last[s.next] = e
	s.next = (s.next + 1) % len(s.last)
}

// Last returns the requests that are remembered, the latest first.
func (s *Slow) Last() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Entry, 0, len(s.last))
	for i := range s.last {
		all = append(all, s.last[(s.next+len(s.last)-1-i)%len(s.last)])
	}
	return all
}
