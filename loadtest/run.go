//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"cacherouter/loadtest/counters"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
	"cacherouter/loadtest/report"
	"cacherouter/loadtest/workload"
)

// runCommand is the flags of "run".
type runCommand struct {
	Target   string        `default:"127.0.0.1:11311" help:"Address host:port or unix:/path of a memcached or a router." group:"Target"`
	Protocol load.Protocol `default:"text" enum:"text,meta,binary" help:"How requests are spelled: text, meta or binary." group:"Target"`
	Client   load.Client   `default:"own" enum:"own,gomemcache" help:"What speaks: own, which is pipelined and cheap, or gomemcache, as in an application." group:"Target"`
	Conns    int           `default:"50" short:"c" help:"Connections." group:"Target"`
	Churn    int           `default:"0" help:"Requests after which a connection is closed and made anew; 0 is never." group:"Target"`

	Rate     float64       `default:"0" short:"r" help:"Requests per second, whether or not they are answered, with latency from when each was due; 0 is a closed loop." group:"Pace"`
	Pipeline int           `default:"0" short:"p" help:"Requests that a connection has on their way: a batch in a closed loop, at most in an open one; 0 is 1, with --rate 16." group:"Pace"`
	Duration time.Duration `default:"5s" short:"d" help:"How long; 0 is until --requests are sent." group:"Pace"`
	Requests int           `default:"0" short:"n" help:"How many requests; 0 is until --duration has passed." group:"Pace"`

	Mix     string          `help:"A published workload, which the flags below change: etc, twitter4, twitter7, twitter8, twitter12, twitter19, twitter29, twitter34." placeholder:"NAME" group:"Workload"`
	Keys    int             `default:"10000" help:"Number of keys." group:"Workload"`
	Choose  workload.Choice `help:"Which keys: uniform, zipf:S, sequential, hotspot:SHARE:KEYS:SECONDS. Default: uniform." placeholder:"WORD" group:"Workload"`
	KeySize workload.Sizes  `help:"Bytes in a key, 11 to 250, as --size. Default: 11." placeholder:"WORD" group:"Workload"`
	Size    workload.Sizes  `help:"Bytes in a value: a number, uniform:LOW:HIGH, exponential:MEAN, gev:LOCATION:SCALE:SHAPE, pareto:LOCATION:SCALE:SHAPE or etc. Default: 100." placeholder:"WORD" group:"Workload"`
	Ratio   workload.Ratio  `help:"Sets to gets, or sets to gets to multigets. Default: 1:10." placeholder:"S:G[:M]" group:"Workload"`
	Multi   int             `default:"10" help:"Keys in a multiget." group:"Workload"`
	TTL     workload.Lives  `name:"ttl" help:"How long items live, as 60s, or with shares as 1h:0.67,2h:0.33. Default: for ever." placeholder:"WORD" group:"Workload"`
	Origin  originFlag      `help:"Ask an origin that takes so long and answers so many at a time, as 2ms:200, for what is missed, and set it." placeholder:"TIME[:N]" group:"Workload"`
	Check   bool            `default:"true" negatable:"" help:"Number the writes of each key, and tell stale values from others. Two load tests at a time must not share keys then." group:"Workload"`
	Fill    bool            `default:"true" negatable:"" help:"Set every key first, not counted." group:"Workload"`
	Seed    uint64          `default:"1" help:"Seed of the request mix." group:"Workload"`

	Threads int      `default:"1" help:"Event loops of the generator." group:"Measuring"`
	Servers []string `help:"Addresses of memcached servers behind the target, whose own counters are shown too." placeholder:"ADDR" group:"Measuring"`
	PID     int      `help:"Also measure what the process with this id uses, such as the target." placeholder:"ID" group:"Measuring"`
	JSON    bool     `name:"json" help:"Print JSON instead of a table." group:"Measuring"`
	HTML    string   `name:"html" help:"Also write a page with plots to this file." placeholder:"FILE" group:"Measuring"`
	Quiet   bool     `short:"q" help:"Show no progress." group:"Measuring"`
}

// plan is what the flags say, on top of the mix, on top of what is usual.
func (c *runCommand) plan() (load.Plan, error) {
	m := workload.Mix{Value: "100", Ratio: workload.Ratio{Sets: 1, Gets: 10}}
	if c.Mix != "" {
		var err error
		if m, err = workload.Find(c.Mix); err != nil {
			return load.Plan{}, err
		}
	}
	pipeline := c.Pipeline
	if pipeline == 0 {
		if pipeline = 1; c.Rate > 0 && c.Client == load.Own {
			pipeline = 16
		}
	}
	return load.Plan{
		Target: c.Target, Protocol: c.Protocol, Client: c.Client, Connections: c.Conns, Pipeline: pipeline, Rate: c.Rate, Churn: c.Churn,
		Keys: c.Keys, KeySize: orElse(c.KeySize, m.Key), ValueSize: orElse(c.Size, m.Value), Choice: orElse(c.Choose, m.Choice),
		Ratio: orElse(c.Ratio, m.Ratio), MultigetKeys: c.Multi, Lives: orElse(c.TTL, m.Lives),
		Versions: c.Check, Origin: c.Origin.Origin, Lanes: c.Threads, Seed: c.Seed,
	}, nil
}

// orElse is v, or what stands for its zero value.
func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Run is called by kong. It prints what was measured also when the load failed or was interrupted.
func (c *runCommand) Run(ctx context.Context) error {
	return c.run(ctx, os.Stdout)
}

func (c *runCommand) run(ctx context.Context, out io.Writer) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	s, err := load.Dial(ctx, plan)
	if err != nil {
		return err
	}
	defer s.Close()
	reserveThreads(c.Threads)
	if c.Fill {
		if _, err := s.Fill(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot fill %s: %w", c.Target, err)
		}
	}
	o, err := c.offer(ctx, s, report.Outcome{Mix: c.Mix, Plan: plan})
	if ctx.Err() != nil {
		err = errors.Join(err, errInterrupted)
	}
	if err != nil {
		o.Error = err.Error()
	}
	return errors.Join(c.print(out, o), err)
}

var errInterrupted = errors.New("interrupted; this is what was measured until then")

// offer runs the load beside everything that watches it.
func (c *runCommand) offer(ctx context.Context, s *load.Session, o report.Outcome) (report.Outcome, error) {
	own, errOwn := process.StartMeter(os.Getpid())
	target, err := c.meter()
	if err = errors.Join(errOwn, err); err != nil {
		return o, err
	}
	watch, err := counters.Start(ctx, c.Servers)
	if err != nil {
		return o, err
	}
	bar := c.progress()
	o.Result, err = s.Run(ctx, load.Extent{Duration: c.Duration, Requests: c.Requests, Watch: bar.tell})
	bar.stop()
	var errs [3]error
	o.Generator, errs[0] = spent(own, os.Getpid(), o.Answered())
	if target != nil {
		o.Process, errs[1] = spent(target, c.PID, o.Answered())
	}
	o.Servers, errs[2] = watch.Stop()
	return o, errors.Join(append([]error{err}, errs[:]...)...)
}

// meter is that of the process that is to be measured too, nil if there is none.
func (c *runCommand) meter() (*process.Meter, error) {
	if c.PID == 0 {
		return nil, nil
	}
	return process.StartMeter(c.PID)
}

// spent is what a process used, by requests.
func spent(m *process.Meter, pid int, answered uint64) (*report.Process, error) {
	used, err := m.Spent()
	n := float64(max(answered, 1))
	return &report.Process{PID: pid, CPU: used.CPU.Seconds() * 1e6 / n, Switches: float64(used.Switches) / n}, err
}

func (c *runCommand) print(out io.Writer, o report.Outcome) error {
	write := o.WriteText
	if c.JSON {
		write = o.WriteJSON
	}
	return errors.Join(write(out), c.writePage(o))
}

func (c *runCommand) writePage(o report.Outcome) error {
	if c.HTML == "" {
		return nil
	}
	f, err := os.Create(c.HTML)
	if err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	return errors.Join(o.WriteHTML(f), f.Close())
}

// originFlag is written "time" or "time:answers at a time" on the command line.
type originFlag struct{ *load.Origin }

// UnmarshalText reads it.
func (o *originFlag) UnmarshalText(text []byte) error {
	latency, capacity, bounded := strings.Cut(string(text), ":")
	d, err := time.ParseDuration(latency)
	n := 0
	if err == nil && bounded {
		n, err = strconv.Atoi(capacity)
	}
	if err != nil || d < 0 || n < 0 {
		return fmt.Errorf("cannot read %q as an origin, as in 2ms or 2ms:200", text)
	}
	o.Origin = &load.Origin{Latency: d, Capacity: n}
	return nil
}
