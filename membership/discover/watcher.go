package discover

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Watcher looks at a source again and again. Its fields are set before Run. Any goroutine
// may ask for its list.
type Watcher struct {
	Source Source
	Guard  Guard
	// Every is the mean time between two looks at a source that does not say how long its
	// answers are good for; default 10 s. One fifth more or less, so that routers do not
	// ask all at once.
	Every time.Duration
	// Shortest is the least time between two looks whatever the source says; default 5 s.
	Shortest time.Duration
	// Log gets changes; nil means slog.Default(). Name says in it what is watched.
	Log  *slog.Logger
	Name string
	// Changed is called, if it is not nil, after the list has changed.
	Changed func()

	mu    sync.Mutex
	list  []Server // guarded by mu, not changed once it is set
	stats WatcherStats
	last  string        // guarded by mu: the error last logged
	again chan struct{} // guarded by mu; see wake
}

// WatcherStats counts what a watcher has seen.
type WatcherStats struct {
	// Looks counts them all, Failures those without an answer, Refusals the answers that
	// were not taken, or not whole.
	Looks, Failures, Refusals uint64
	// Stale says that the last look brought nothing that was taken.
	Stale bool
}

// List returns the last good list, sorted by name; nil if there was none yet. It is not
// to be changed.
func (w *Watcher) List() []Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// Stats returns the counters.
func (w *Watcher) Stats() WatcherStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Run looks until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	for {
		ttl := w.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-w.wake():
		case <-time.After(w.pause(ttl)):
		}
	}
}

// Again makes Run look at once, because the source is known to have changed.
func (w *Watcher) Again() {
	select {
	case w.wake() <- struct{}{}:
	default:
	}
}

func (w *Watcher) wake() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again == nil {
		w.again = make(chan struct{}, 1)
	}
	return w.again
}

// pause is the time until the next look.
func (w *Watcher) pause(ttl time.Duration) time.Duration {
	if ttl == 0 {
		ttl = cmp.Or(w.Every, 10*time.Second)
	}
	d := max(ttl, cmp.Or(w.Shortest, 5*time.Second))
	return d*4/5 + rand.N(d*2/5+1)
}

// Look looks once, and returns the time to live of the answer. It is for Run and for a
// first look before it; not for two goroutines at once.
func (w *Watcher) Look(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a, err := w.Source.Look(ctx)
	if errors.Is(err, context.Canceled) {
		return 0
	}
	if w.take(a, err, time.Now()) && w.Changed != nil {
		w.Changed()
	}
	return a.TTL
}

// lookTimeout bounds one look.
const lookTimeout = 10 * time.Second

// take takes an answer in and reports whether the list has changed.
func (w *Watcher) take(a Answer, err error, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Looks++
	list := w.list
	if err != nil {
		w.stats.Failures++
	} else if list, err = w.Guard.Judge(a.Servers, now); err != nil {
		w.stats.Refusals++
	}
	w.stats.Stale = err != nil
	w.say(err)
	changed := !slices.Equal(list, w.list)
	w.list = list
	return changed
}

// say logs an error when it comes or goes, not each time.
func (w *Watcher) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == w.last {
		return
	}
	w.last = text
	log := w.Log
	if log == nil {
		log = slog.Default()
	}
	if err != nil {
		log.Warn("list of servers not taken, the last good one stays in force", "source", w.Name, "err", err)
	} else {
		log.Info("list of servers read again", "source", w.Name)
	}
}
