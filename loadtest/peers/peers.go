//go:build linux

// Package peers compares what two memcached proxies cost, in alternating runs of the same load on
// the same memcached servers and the same machine. What is measured, and how runs take turns, is
// package paired's.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/workload"
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
	Layout     process.Layout
	Progress   func(string) // told what is going on; nil is silence
}

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
	contenders [3]contender // ours, against, direct
	unpin      func()       // lets this process run where it could
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
	s := &stage{config: c, unpin: func() {}}
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

func (s *stage) pin() (err error) {
	var proxies, servers []int
	for _, m := range s.servers {
		servers = append(servers, m.ID())
	}
	for _, c := range s.contenders[:2] {
		proxies = append(proxies, c.server.ID())
	}
	s.unpin, err = s.config.Layout.Apply(proxies, servers)
	return err
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
	s.unpin()
	os.RemoveAll(s.dir)
}

// run lets the contenders take turns with one shape.
func (s *stage) run(ctx context.Context, shape Shape) (Outcome, error) {
	c := paired.Config{
		Rounds: s.config.Pairs, Duration: s.config.Duration, Warmup: s.config.Warmup, Order: turns,
		Progress: func(text string) { s.config.say("%s: %s", shape.Name, text) },
	}
	var contenders []paired.Contender
	for _, x := range s.contenders {
		p := load.DefaultPlan(x.server.Addr)
		p.Connections, p.Pipeline, p.ValueSize = shape.Connections, shape.Pipeline, workload.Fixed(shape.ValueSize)
		contenders = append(contenders, paired.Contender{Name: x.name, Plan: p, PID: x.server.ID()})
	}
	samples, err := paired.Run(ctx, c, contenders)
	return Outcome{Shape: shape, Samples: [3][]Sample(samples.Of), Failed: samples.Failed}, err
}

// turns is the order of the contenders in one round: the first two alternate, memcached is last.
func turns(round int) []int {
	if round%2 == 0 {
		return []int{0, 1, 2}
	}
	return []int{1, 0, 2}
}
