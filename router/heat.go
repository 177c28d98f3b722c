package router

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"cacherouter/hotkey"
)

// heatEvery is the time between two looks at which keys are hot.
const heatEvery = 100 * time.Millisecond

// heat finds the hot keys of all loops.
type heat struct {
	collector *hotkey.Collector
	samples   []*hotkey.Sample // one of each loop
}

// newHeat makes the loops count keys.
func newHeat(c hotkey.Config, workers []*worker) (*heat, error) {
	collector, err := hotkey.NewCollector(c)
	if err != nil {
		return nil, err
	}
	h := &heat{collector: collector}
	for _, w := range workers {
		w.counter = hotkey.NewCounter(rand.Uint64())
		h.samples = append(h.samples, new(hotkey.Sample))
	}
	return h, nil
}

// watchHeat collects what the loops count, until the context ends.
func (r *Router) watchHeat(ctx context.Context) error {
	tick := time.NewTicker(heatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.collectHeat(ctx)
		}
	}
}

func (r *Router) collectHeat(ctx context.Context) {
	done := make(chan struct{}, len(r.workers))
	for i, w := range r.workers {
		w.loop.Post(func() { // unless the loops have ended, and so will ctx
			w.counter.Sample(r.heat.samples[i], w.now())
			done <- struct{}{}
		})
	}
	for range r.workers {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
	collector := r.heat.collector
	for _, c := range collector.Collect(r.heat.samples, time.Since(r.started)) {
		level := slog.LevelInfo
		if c.To > c.From {
			level = slog.LevelWarn
		}
		r.cfg.Log.Log(ctx, level, "key heat", "key", strconv.QuoteToASCII(c.Key), "from", c.From.String(), "to", c.To.String(),
			"rate", int(c.Rate), "share", float64(int(c.Share*1000))/1000, "bytes", int(c.Bytes))
	}
	if r.limiter != nil {
		r.limiter.Follow(collector.Heat())
	}
	if l, ok := collector.Alert(); ok {
		r.cfg.Log.Warn("large value", "value", l)
	}
}

// HotKeys reports the k outstanding keys of all loops, nil if keys are not counted. Any
// goroutine may call it.
func (r *Router) HotKeys(k int) *hotkey.Report {
	if r.heat == nil {
		return nil
	}
	return r.heat.collector.Report(k)
}

// HotHints returns what other routers may be told of the hottest keys. Any goroutine may
// call it.
func (r *Router) HotHints() []hotkey.Hint {
	if r.heat == nil {
		return nil
	}
	return r.heat.collector.Hints()
}

// hot reports whether a key is hot.
func (w *worker) hot(hash uint64) bool { return w.heat.Level(hash) > hotkey.Cold }

// touch counts a request on a key.
func (w *worker) touch(hash uint64, key []byte, write bool) {
	if w.counter == nil {
		return
	}
	w.counter.Touch(hash, key)
	if write {
		w.counter.Wrote(hash)
	}
}

// moved counts the bytes of a key's value: of small values one in several for all, as
// only the sums matter.
func (w *worker) moved(hash uint64, key []byte, n int) {
	if w.counter == nil {
		return
	}
	if n < smallValue {
		w.movedTimes++
		if w.movedTimes%oneInSeveral != 0 {
			return
		}
		n *= oneInSeveral
	}
	w.counter.Moved(hash, key, n)
}

const (
	smallValue   = 4 << 10
	oneInSeveral = 8
)
