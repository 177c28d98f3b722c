package admin

import (
	"time"

	"cacherouter/latency"
	"cacherouter/router"
)

// Overview is what /api/v1/overview says: whether the router is well, and its figures.
type Overview struct {
	At     time.Time `json:"at"`
	Router string    `json:"router"` // its name
	// Pool is the one that is shown, Pools are all, if there are several.
	Pool  string   `json:"pool,omitempty"`
	Pools []string `json:"pools,omitempty"`
	// Started is when the process began, as far as it knows.
	Started time.Time `json:"started"`
	// Level is well, warning or trouble; Sentence says why. Problems are all that are known,
	// the worst first.
	Level    string    `json:"level"`
	Sentence string    `json:"sentence"`
	Problems []Problem `json:"problems"`
	// Window is the time that rates are taken over.
	Window float64 `json:"window_seconds"`
	// Requests are those of clients, Keys what retrievals asked for, Writes what changed
	// items, Failed what no server answered, and Refused what was beyond a quota or a hot key's
	// limit, or shed.
	Requests float64 `json:"requests_per_second"`
	Keys     float64 `json:"keys_per_second"`
	Writes   float64 `json:"writes_per_second"`
	Failed   float64 `json:"failed_per_second"`
	Refused  float64 `json:"refused_per_second"`
	// HitRatio is the share of the keys that retrievals found, 0 to 1; null if none were asked for.
	HitRatio *float64 `json:"hit_ratio"`
	// P50 and P99 are the times that half, and all but one in a hundred, of the requests of
	// the window took at most; null if there were none.
	P50 *float64 `json:"p50_seconds"`
	P99 *float64 `json:"p99_seconds"`
	// Clients is how many are connected.
	Clients int `json:"clients"`
	// Received and Sent are bytes, of clients and servers.
	Received float64 `json:"received_bytes_per_second"`
	Sent     float64 `json:"sent_bytes_per_second"`
	// Shared are gets that others' requests answered, Near those that the near cache did,
	// Spilled reads that went elsewhere as their home was full, Redirected those that did as
	// it failed.
	Shared     float64 `json:"shared_per_second"`
	Near       float64 `json:"near_hits_per_second"`
	Spilled    float64 `json:"spilled_per_second"`
	Redirected float64 `json:"redirected_per_second"`
	// Engine is how the event loops serve sockets: uring, epoll or portable.
	Engine string `json:"engine,omitempty"`
	// Busy is the share of their time that the event loops spend in turns, 0 to 1.
	Busy float64 `json:"loops_busy"`
	// Actions says what it takes to drain, undrain and reload: nothing is open, a token is
	// token, and none means that this listener takes none.
	Actions string `json:"actions"`
	// ChangesSeq and Digest say whether /api/v1/changes and /api/v1/placement have anything
	// new.
	ChangesSeq uint64 `json:"changes_seq"`
	Digest     string `json:"digest"`
}

// overview puts the figures together.
func (s *Server) overview(f *survey, routers *Routers) Overview {
	w := f.w
	o := Overview{
		At: w.to.at.UTC().Round(time.Millisecond), Router: s.cfg.Name, Started: s.started.UTC().Round(time.Millisecond),
		Window:     w.seconds(),
		Requests:   w.rate(func(s *router.Snapshot) uint64 { return s.Total() }),
		Keys:       w.rate(func(s *router.Snapshot) uint64 { return s.Keys }),
		Writes:     w.rate(writesOf),
		Failed:     w.rate(func(s *router.Snapshot) uint64 { return s.Failed }),
		Refused:    w.rate(func(s *router.Snapshot) uint64 { return s.OverQuota + s.Limited + s.Shedded() }),
		Clients:    w.to.total.Sessions,
		Received:   w.rate(func(s *router.Snapshot) uint64 { return s.Loop.BytesIn }),
		Sent:       w.rate(func(s *router.Snapshot) uint64 { return s.Loop.BytesOut }),
		Shared:     w.rate(func(s *router.Snapshot) uint64 { return s.Flights.Joined }),
		Near:       w.rate(func(s *router.Snapshot) uint64 { return s.Near.Hits }),
		Spilled:    w.rate(func(s *router.Snapshot) uint64 { return s.Spilled }),
		Redirected: w.rate(func(s *router.Snapshot) uint64 { return s.Redirected }),
		Engine:     s.cfg.Engine,
		Actions:    s.actions(),
	}
	o.Pool = s.cfg.Pool
	for _, p := range s.cfg.Pools {
		o.Pools = append(o.Pools, p.Name)
	}
	o.HitRatio = w.hitRatio()
	o.P50, o.P99 = quantiles(&w.from.total.Latency, &w.to.total.Latency)
	if s.cfg.Loops > 0 {
		busy := w.rate(func(s *router.Snapshot) uint64 { return uint64(s.Loop.BusyNanos) })
		o.Busy = busy / 1e9 / float64(s.cfg.Loops)
	}
	if s.cfg.History != nil {
		o.ChangesSeq, _ = s.cfg.History.since()
	}
	if p := s.pictures.now(); p != nil {
		o.Digest = p.Digest
	}
	o.Problems = s.problems(f, &o, routers)
	o.Level, o.Sentence = verdict(f, o.Problems, routers)
	return o
}

// quantiles returns the median and the 99th percentile, in seconds, of what was counted from
// one time to another; nil where nothing was, or counting has begun anew.
func quantiles(from, to *latency.Histogram) (p50, p99 *float64) {
	if to.Count() <= from.Count() {
		return nil, nil
	}
	took := to.Since(from)
	a, b := took.Quantile(0.5).Seconds(), took.Quantile(0.99).Seconds()
	return &a, &b
}

// hitRatio is nil where nobody asked for anything.
func (w window) hitRatio() *float64 {
	hits := w.to.total.Hits - w.from.total.Hits
	misses := w.to.total.Misses - w.from.total.Misses
	if hits+misses == 0 {
		return nil
	}
	r := float64(hits) / float64(hits+misses)
	return &r
}
