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
func (p *Pool) watchHeat(ctx context.Context) {
	tick := time.NewTicker(heatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.collectHeat(ctx)
		}
	}
}

func (p *Pool) collectHeat(ctx context.Context) {
	done := make(chan struct{}, len(p.workers))
	for i, w := range p.workers {
		w.loop.Post(func() { // unless the loops have ended, and so will ctx
			w.counter.Sample(p.heat.samples[i], w.now())
			done <- struct{}{}
		})
	}
	for range p.workers {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
	collector := p.heat.collector
	for _, c := range collector.Collect(p.heat.samples, time.Since(p.r.started)) {
		level := slog.LevelInfo
		if c.To > c.From {
			level = slog.LevelWarn
		}
		p.r.cfg.Log.Log(ctx, level, "key heat", "key", strconv.QuoteToASCII(c.Key), "from", c.From.String(), "to", c.To.String(),
			"rate", int(c.Rate), "share", float64(int(c.Share*1000))/1000, "bytes", int(c.Bytes))
	}
	if p.limiter != nil {
		p.limiter.Follow(collector.Heat())
	}
	if l, ok := collector.Alert(); ok {
		p.r.cfg.Log.Warn("large value", "value", l)
	}
}

// HotKeys reports the k outstanding keys of all loops, nil if keys are not counted. Any
// goroutine may call it.
func (p *Pool) HotKeys(k int) *hotkey.Report {
	if p.heat == nil {
		return nil
	}
	return p.heat.collector.Report(k)
}

// HotHints returns what other routers may be told of the hottest keys. Any goroutine may
// call it.
func (p *Pool) HotHints() []hotkey.Hint {
	if p.heat == nil {
		return nil
	}
	return p.heat.collector.Hints()
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
