//go:build linux

package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Window is what was measured in one second of a run. A reply counts in the second in which it came, a
// request in that in which it was sent, so that they need not add up.
type Window struct {
	Second int `json:"second"` // from 0
	Counts
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
}

// series puts the seconds of all drivers together. It may be used concurrently.
type series struct {
	watch func(Window) // may be nil

	mu     sync.Mutex // guards all below
	closed []int      // the second that each driver has told of last
	open   map[int]*moment
	done   []Window
}

// moment is a second that not all drivers have told of.
type moment struct {
	Counts
	latency *hdrhistogram.Histogram // microseconds, to two digits
}

func newMoment() *moment {
	return &moment{latency: hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 2)}
}

func newSeries(drivers int, watch func(Window)) *series {
	s := &series{watch: watch, closed: make([]int, drivers), open: map[int]*moment{}}
	for i := range s.closed {
		s.closed[i] = -1
	}
	return s
}

// tell takes in one driver's second; it is through with those before.
func (s *series) tell(driver, second int, m *moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.open[second]
	if all == nil {
		all = newMoment()
		s.open[second] = all
	}
	all.Counts.add(m.Counts)
	all.latency.Merge(m.latency)
	s.closed[driver] = second
	s.finishLocked()
}

// end says that a driver has nothing more to tell.
func (s *series) end(driver int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[driver] = math.MaxInt
	s.finishLocked()
}

// finishLocked closes the seconds that all drivers are through with.
func (s *series) finishLocked() {
	through := math.MaxInt
	for _, second := range s.closed {
		through = min(through, second)
	}
	for len(s.open) > 0 && len(s.done) <= through {
		second := len(s.done)
		m := s.open[second]
		if m == nil {
			m = newMoment()
		}
		delete(s.open, second)
		w := Window{Second: second, Counts: m.Counts, Max: float64(m.latency.Max())}
		if m.latency.TotalCount() > 0 {
			w.P50, w.P99 = float64(m.latency.ValueAtQuantile(50)), float64(m.latency.ValueAtQuantile(99))
		}
		s.done = append(s.done, w)
		if s.watch != nil {
			s.watch(w)
		}
	}
}

// windows are the seconds so far.
func (s *series) windows() []Window {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// pulse tells a series of each second of one driver. The zero value tells nobody.
type pulse struct {
	series *series
	driver int
	second int
	before Counts // at the beginning of the second
	now    *moment
}

func newPulse(s *series, driver int) pulse { return pulse{series: s, driver: driver, now: newMoment()} }

func (p *pulse) took(d time.Duration) {
	if p.now != nil {
		_ = p.now.latency.RecordValue(min(max(d.Microseconds(), 1), p.now.latency.HighestTrackableValue()))
	}
}

// beat is to be called now and then with the time, in nanoseconds of the run, and what was counted so far.
func (p *pulse) beat(now int64, counts Counts) {
	second := int(now / int64(time.Second))
	if p.now == nil || second <= p.second {
		return
	}
	p.tell(counts)
	p.second = second
}

func (p *pulse) tell(counts Counts) {
	p.now.Counts = counts.since(p.before)
	p.series.tell(p.driver, p.second, p.now)
	p.before = counts
	p.now.latency.Reset()
}

// end tells what is left.
func (p *pulse) end(counts Counts) {
	if p.now != nil {
		p.tell(counts)
		p.series.end(p.driver)
	}
}
