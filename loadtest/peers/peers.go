//go:build linux

// Package peers compares what two memcached proxies cost, in alternating runs of the same load on
// the same memcached servers and the same machine.
//
// The measure is the processor time of the proxy's process per request, because it decides how many
// machines a fleet of proxies takes and does not depend on what else limits the throughput. Single
// figures on a shared machine drift by tens of percent within minutes, so the runs take turns
// (A B, B A, A B ...), each pair gives one ratio, and the median of these ratios is the result;
// their quartiles are printed beside it. Many short pairs are steadier than few long ones.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// Nutcracker, as a contender of a Config, is the nutcracker in PATH.
const Nutcracker = "nutcracker"

const serverCount = 4

// Config describes a comparison. Ours, Against, Pairs and Duration must be set.
type Config struct {
	Ours       string        // the contender whose figures are divided: Nutcracker or the path of a cacherouter binary
	Against    string        // the contender they are divided by
	RouterArgs []string      // further arguments for Ours when it is a cacherouter
	Pairs      int           // how often each contender runs each shape
	Duration   time.Duration // of one measured run
	Warmup     time.Duration // of the same load just before it, not measured
	Shapes     []Shape       // what to run
	Layout     Layout        // which processors are used; empty is Free
	Progress   func(string)  // told what is going on; nil is silence
}

// Layout says which processors the processes may use.
type Layout string

// The layouts. What a write costs depends on whether it wakes a process on another processor, so
// figures of different layouts must not be compared with each other.
const (
	Free   Layout = "none"  // all processes anywhere
	Split  Layout = "split" // the proxies on processor 0, the servers and the load on processor 1
	Shared Layout = "one"   // everything on processor 0
)

// Measure names the figure that a Shape is about.
type Measure string

// The measures.
const (
	CPU Measure = "cpu" // microseconds of the proxy's processor time per request
	P50 Measure = "p50" // median latency in microseconds
)

// Shape is one form of load.
type Shape struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	Pipeline    int     `json:"pipeline"`
	ValueSize   int     `json:"value_size"`
	Measure     Measure `json:"measure"`
	Target      float64 `json:"target"` // the ratio that must not be exceeded
}

// Shapes are the loads that the project holds itself to, against nutcracker 0.5.0.
func Shapes() []Shape {
	return []Shape{
		{"single", 50, 1, 100, CPU, 0.80},
		{"pipelined", 50, 16, 100, CPU, 0.45},
		{"alone", 1, 1, 100, P50, 1.00},
	}
}

func (c Config) validate() error {
	if c.Ours == "" || c.Against == "" {
		return errors.New("cannot compare: a contender is missing")
	}
	if c.Pairs < 1 || c.Duration <= 0 {
		return fmt.Errorf("cannot compare in %d pairs of %v", c.Pairs, c.Duration)
	}
	return nil
}

func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// stage is the running servers of one comparison.
type stage struct {
	config     Config
	dir        string
	servers    []*process.Server
	contenders [3]contender        // ours, against, direct
	own        *process.Processors // where this process may run otherwise; nil when it was not pinned
}

// contender is a target of the load and the process whose cost counts.
type contender struct {
	name   string
	server *process.Server
}

// Compare runs c. When ctx ends early, the report holds what was measured so far and the error is
// ctx's. All processes it started are gone when it returns.
func Compare(ctx context.Context, c Config) (*Report, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s, err := setUp(ctx, c)
	defer s.tearDown()
	if err != nil {
		return nil, err
	}
	r := newReport(c, s)
	for _, shape := range c.Shapes {
		o, err := s.run(ctx, shape)
		o.conclude()
		r.Outcomes = append(r.Outcomes, o)
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// setUp starts the servers and the contenders. The stage must be torn down also after an error.
func setUp(ctx context.Context, c Config) (*stage, error) {
	s := &stage{config: c}
	var err error
	if s.dir, err = os.MkdirTemp("", "loadtest-peers-"); err != nil {
		return s, fmt.Errorf("cannot make a directory for the servers: %w", err)
	}
	for range serverCount {
		m, err := process.StartMemcached(ctx, s.dir, 1)
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, m)
	}
	for i, what := range []string{c.Ours, c.Against} {
		p, err := s.startProxy(ctx, what, i == 0)
		if err != nil {
			return s, err
		}
		s.contenders[i] = contender{nameOf(what, i), p}
	}
	s.contenders[2] = contender{"memcached", s.servers[0]}
	return s, s.pin()
}

func nameOf(what string, i int) string {
	if what == Nutcracker {
		return [...]string{"nutcracker (as ours)", "nutcracker"}[i]
	}
	return [...]string{"cacherouter", "cacherouter (against)"}[i]
}

func (s *stage) startProxy(ctx context.Context, what string, ours bool) (*process.Server, error) {
	var backends []string
	for _, m := range s.servers {
		backends = append(backends, m.Addr)
	}
	if what == Nutcracker {
		return process.StartNutcracker(ctx, s.dir, backends)
	}
	args := []string{"--loops", "1"}
	if ours {
		args = append(args, s.config.RouterArgs...)
	}
	return process.StartRouter(ctx, what, backends, args...)
}

// pin lays the processes out. It comes after they started, so that a contender finds the processors
// of the machine and not those of its layout.
func (s *stage) pin() error {
	rest := process.Only(0)
	switch s.config.Layout {
	case Split:
		rest = process.Only(1)
	case Shared:
	default:
		return nil
	}
	own, err := process.Allowed(os.Getpid())
	if err != nil {
		return err
	}
	s.own = &own
	processors := map[int]process.Processors{os.Getpid(): rest}
	for _, m := range s.servers {
		processors[m.ID()] = rest
	}
	for _, c := range s.contenders[:2] {
		processors[c.server.ID()] = process.Only(0)
	}
	for pid, to := range processors {
		if err := process.Pin(pid, to); err != nil {
			return err
		}
	}
	return nil
}

// tearDown stops everything at once: a memcached takes a second to notice.
func (s *stage) tearDown() {
	var stopping sync.WaitGroup
	for _, c := range s.contenders[:2] {
		if c.server != nil {
			stopping.Go(c.server.Stop)
		}
	}
	for _, m := range s.servers {
		stopping.Go(m.Stop)
	}
	stopping.Wait()
	if s.own != nil {
		_ = process.Pin(os.Getpid(), *s.own) // it could be pinned, so it can be unpinned
	}
	os.RemoveAll(s.dir)
}

// run lets the contenders take turns with one shape. A round that fails is told in the outcome and
// does not count; when too many fail, so does the comparison.
func (s *stage) run(ctx context.Context, shape Shape) (Outcome, error) {
	o := Outcome{Shape: shape}
	for round := range s.config.Pairs {
		samples, err := s.round(ctx, shape, round)
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		if err == nil {
			o.add(samples)
			continue
		}
		if o.Failed = append(o.Failed, err.Error()); len(o.Failed) > s.config.Pairs/4 {
			return o, fmt.Errorf("cannot compare, %d rounds of %d failed: %w", len(o.Failed), round+1, err)
		}
	}
	return o, nil
}

// round measures each contender once.
func (s *stage) round(ctx context.Context, shape Shape, n int) (samples [3]Sample, err error) {
	for _, i := range turns(n) {
		c := s.contenders[i]
		s.config.say("%s: pair %d of %d, %s", shape.Name, n+1, s.config.Pairs, c.name)
		if samples[i], err = s.sample(ctx, shape, c); err != nil {
			return samples, err
		}
	}
	return samples, nil
}

// turns is the order of the contenders in one round. Who goes first changes, because whoever
// follows a certain other was seen to get a few percent more or less of the machine.
func turns(round int) [3]int {
	if round%2 == 0 {
		return [3]int{0, 1, 2}
	}
	return [3]int{1, 0, 2}
}

// sample loads one contender once.
func (s *stage) sample(ctx context.Context, shape Shape, c contender) (Sample, error) {
	p := load.DefaultPlan(c.server.Addr)
	p.Connections, p.Pipeline, p.ValueSize = shape.Connections, shape.Pipeline, shape.ValueSize
	session, err := load.Dial(ctx, p)
	if err != nil {
		return Sample{}, err
	}
	defer session.Close()
	if _, err := session.Fill(ctx); err != nil {
		return Sample{}, fmt.Errorf("cannot fill through %s: %w", c.name, err)
	}
	if s.config.Warmup > 0 {
		if _, err := session.Run(ctx, load.Extent{Duration: s.config.Warmup}); err != nil {
			return Sample{}, fmt.Errorf("cannot load %s: %w", c.name, err)
		}
	}
	sample, err := s.measure(ctx, session, c)
	if err == nil {
		err = ctx.Err() // a run that was cut short is no sample
	}
	if err != nil {
		return Sample{}, fmt.Errorf("cannot measure %s: %w", c.name, err)
	}
	return sample, nil
}

func (s *stage) measure(ctx context.Context, session *load.Session, c contender) (Sample, error) {
	proxy, err := process.StartMeter(c.server.ID())
	if err != nil {
		return Sample{}, err
	}
	generator, err := process.StartMeter(os.Getpid())
	if err != nil {
		return Sample{}, err
	}
	r, err := session.Run(ctx, load.Extent{Duration: s.config.Duration})
	if err != nil {
		return Sample{}, err
	}
	spent, err := proxy.Spent()
	if err != nil {
		return Sample{}, err
	}
	own, err := generator.Spent()
	return newSample(spent, own, r), err
}
