//go:build linux

// Package scale measures how the router's cost per request, its memory and its start depend on the number of
// servers, clients, loops, pools, routes and hot keys. The points of a dimension take turns on the same servers,
// as package paired has it, and each is compared with the first.
package scale

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
)

// Config says what is measured. Router, Rounds and Duration must be set.
type Config struct {
	Router   string        // binary of the router
	Only     []string      // names of dimensions; empty is all
	Rounds   int           // how often each point is measured
	Duration time.Duration // of one measured run
	Warmup   time.Duration // of the same load just before it, not measured
	Layout   process.Layout
	Progress func(string) // told what is going on; nil is silence
}

// Point is one value of a dimension.
type Point struct {
	Value   string          `json:"value"`
	Samples []paired.Sample `json:"samples"`
	Median  paired.Sample   `json:"median"`
	// Ratio is of the processor time per request to that of the first point: the median of the rounds'.
	Ratio    paired.Spread `json:"ratio"`
	Start    float64       `json:"start_seconds"`  // from the start of the router to when it listened
	AtStart  uint64        `json:"resident_start"` // bytes, then
	Resident uint64        `json:"resident"`       // bytes, after the load
}

// Outcome is one dimension.
type Outcome struct {
	Dimension string   `json:"dimension"`
	Points    []Point  `json:"points"`
	Failed    []string `json:"failed,omitempty"`
}

// Measure runs c. With an error the outcomes hold what was measured so far.
func Measure(ctx context.Context, c Config) ([]Outcome, error) {
	var all []Outcome
	for _, d := range dimensions {
		if len(c.Only) > 0 && !slices.Contains(c.Only, d.name) {
			continue
		}
		o, err := c.measure(ctx, d)
		all = append(all, o)
		if err != nil {
			return all, fmt.Errorf("cannot measure %s: %w", d.name, err)
		}
	}
	return all, nil
}

// Names are those of the dimensions.
func Names() (names []string) {
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	return names
}

// stage is what runs for one dimension.
type stage struct {
	dir     string
	servers []*process.Server
	routers []*process.Server // by point; nil where the one before it is meant
	unpin   func()
}

func (c Config) measure(ctx context.Context, d dimension) (Outcome, error) {
	o := Outcome{Dimension: d.name}
	s := &stage{unpin: func() {}}
	defer s.tearDown()
	points := d.points()
	if err := c.setUp(ctx, s, points, &o); err != nil {
		return o, err
	}
	var contenders []paired.Contender
	for i, p := range points {
		contenders = append(contenders, paired.Contender{Name: p.value, Plan: p.plan(s.routers[i].Addr), PID: s.routers[i].ID()})
	}
	samples, err := paired.Run(ctx, paired.Config{
		Rounds: c.Rounds, Duration: c.Duration, Warmup: c.Warmup,
		Progress: func(text string) { c.say("%s: %s", d.name, text) },
	}, contenders)
	o.Failed = samples.Failed
	for i := range points {
		x := &o.Points[i]
		x.Samples, x.Median = samples.Of[i], paired.Median(samples.Of[i])
		x.Ratio = paired.Compare([][]paired.Sample{samples.Of[i], samples.Of[0]}, func(r []paired.Sample) float64 { return r[0].CPU / r[1].CPU })
		x.Resident, _ = process.Resident(s.routers[i].ID())
	}
	return o, err
}

// setUp starts the servers and a router for each point that wants one of its own.
func (c Config) setUp(ctx context.Context, s *stage, points []point, o *Outcome) (err error) {
	if s.dir, err = os.MkdirTemp("", "loadtest-scale-"); err != nil {
		return fmt.Errorf("cannot make a directory for the servers: %w", err)
	}
	if err := s.startServers(ctx); err != nil {
		return err
	}
	for _, p := range points {
		x := Point{Value: p.value}
		if n := len(s.routers); p.router == nil && n > 0 {
			s.routers = append(s.routers, s.routers[n-1])
		} else if err := c.start(ctx, s, p, &x); err != nil {
			return err
		}
		o.Points = append(o.Points, x)
	}
	var routers, servers []int
	for _, r := range s.routers {
		routers = append(routers, r.ID())
	}
	for _, m := range s.servers {
		servers = append(servers, m.ID())
	}
	s.unpin, err = c.Layout.Apply(routers, servers)
	return err
}

// start starts the router of a point and measures that.
func (c Config) start(ctx context.Context, s *stage, p point, x *Point) error {
	backends, args, err := p.arguments(s)
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := process.StartRouter(ctx, c.Router, backends, args...)
	if err != nil {
		return err
	}
	x.Start = time.Since(began).Seconds()
	s.routers = append(s.routers, r)
	session, err := load.Dial(ctx, load.DefaultPlan(r.Addr)) // it has dialled its servers when all keys are set
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := session.Fill(ctx); err != nil {
		return fmt.Errorf("cannot fill through a router with %s: %w", x.Value, err)
	}
	x.AtStart, err = process.Resident(r.ID())
	return err
}

func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

func (s *stage) tearDown() {
	var stopping sync.WaitGroup
	for i, r := range s.routers {
		if i == 0 || r != s.routers[i-1] {
			stopping.Go(r.Stop)
		}
	}
	for _, m := range s.servers {
		stopping.Go(m.Stop)
	}
	stopping.Wait()
	s.unpin()
	os.RemoveAll(s.dir)
}
