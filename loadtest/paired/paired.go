//go:build linux

// Package paired measures what server processes cost per request, in turns.
//
// The measure is the processor time of a process, because it decides how many machines a fleet takes
// and does not depend on what else limits the throughput. Single figures on a shared machine drift by
// tens of percent within minutes, so contenders are loaded in short rounds, each of them once in a
// round, and compared within their round: each round gives one ratio, and the median of these is the
// result. Many short rounds are steadier than few long ones.
package paired

import (
	"context"
	"fmt"
	"os"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// Contender is a load and the process whose cost counts.
type Contender struct {
	Name string // how progress and errors call it
	Plan load.Plan
	PID  int
}

// Config says how contenders take turns. Rounds and Duration must be set.
type Config struct {
	Rounds   int                   // how often each contender is measured
	Duration time.Duration         // of one measured run
	Warmup   time.Duration         // of the same load just before it, not measured
	Order    func(round int) []int // who goes when in a round, counted from 0; nil is Alternate
	Progress func(string)          // told what is going on; nil is silence
}

// Samples are those of the rounds in which all contenders were measured, by contender and round.
type Samples struct {
	Of     [][]Sample
	Failed []string // why rounds were left out
}

// Run measures. A round that fails is told in the samples and does not count; when more than a
// quarter of all fail, so does Run. The samples hold what was measured also with an error, which is
// ctx's when that ended.
func Run(ctx context.Context, c Config, contenders []Contender) (Samples, error) {
	s := Samples{Of: make([][]Sample, len(contenders))}
	if c.Order == nil {
		c.Order = func(round int) []int { return Alternate(len(contenders), round) }
	}
	for n := range c.Rounds {
		round, err := c.round(ctx, contenders, n)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err == nil {
			s.add(round)
			continue
		}
		if s.Failed = append(s.Failed, err.Error()); len(s.Failed) > c.Rounds/4 {
			return s, fmt.Errorf("cannot compare, %d rounds of %d failed: %w", len(s.Failed), n+1, err)
		}
	}
	return s, nil
}

func (s *Samples) add(round []Sample) {
	for i, x := range round {
		s.Of[i] = append(s.Of[i], x)
	}
}

// Alternate is an order of n contenders in which each comes first, second and so on equally often,
// and after either of its neighbours: whoever follows a certain other was seen to get a few percent
// more or less of the machine.
func Alternate(n, round int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = (i + round/2) % n
		if round%2 == 1 {
			order[i] = n - 1 - order[i]
		}
	}
	return order
}

// round measures each contender once.
func (c Config) round(ctx context.Context, contenders []Contender, n int) ([]Sample, error) {
	samples := make([]Sample, len(contenders))
	for _, i := range c.Order(n) {
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("pair %d of %d, %s", n+1, c.Rounds, contenders[i].Name))
		}
		var err error
		if samples[i], err = c.sample(ctx, contenders[i]); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// sample loads one contender once.
func (c Config) sample(ctx context.Context, x Contender) (Sample, error) {
	session, err := load.Dial(ctx, x.Plan)
	if err != nil {
		return Sample{}, err
	}
	defer session.Close()
	if _, err := session.Fill(ctx); err != nil {
		return Sample{}, fmt.Errorf("cannot fill through %s: %w", x.Name, err)
	}
	if c.Warmup > 0 {
		if _, err := session.Run(ctx, load.Extent{Duration: c.Warmup}); err != nil {
			return Sample{}, fmt.Errorf("cannot load %s: %w", x.Name, err)
		}
	}
	s, err := measure(ctx, session, x.PID, c.Duration)
	if err == nil {
		err = ctx.Err() // a run that was cut short is no sample
	}
	if err != nil {
		return Sample{}, fmt.Errorf("cannot measure %s: %w", x.Name, err)
	}
	return s, nil
}

func measure(ctx context.Context, session *load.Session, pid int, d time.Duration) (Sample, error) {
	server, err := process.StartMeter(pid)
	if err != nil {
		return Sample{}, err
	}
	generator, err := process.StartMeter(os.Getpid())
	if err != nil {
		return Sample{}, err
	}
	r, err := session.Run(ctx, load.Extent{Duration: d})
	if err != nil {
		return Sample{}, err
	}
	spent, err := server.Spent()
	if err != nil {
		return Sample{}, err
	}
	own, err := generator.Spent()
	return newSample(spent, own, r), err
}
