//go:build linux

package peers

import (
	"context"
	"fmt"
	"io"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// Memory that idle clients of the router may take.
const (
	IdleClients = 20_000
	idleTarget  = 60 << 20
)

const (
	settlePatience = 5 * time.Second
	ownDescriptors = 1000 // that a process needs beside those of clients: each wave has some
	waveSize       = 100  // clients that ask at the same time, while idle clients are made
)

// Idle is the memory of a proxy with many clients that have each been served and now do nothing.
type Idle struct {
	Contender string `json:"contender"`
	Clients   int    `json:"clients"`
	Before    uint64 `json:"resident_before"`    // bytes, with no client
	Connected uint64 `json:"resident_connected"` // bytes, clients connected that never asked anything
	Served    uint64 `json:"resident_served"`    // bytes, each has asked, a hundred of them at a time
	Burst     uint64 `json:"resident_burst"`     // bytes, after all have asked in the same moment; for information
	Failed    uint64 `json:"burst_errors"`       // requests of that moment that were answered with an error
}

// Met reports whether the memory is within the target.
func (i Idle) Met() bool { return max(i.Connected, i.Served) <= idleTarget }

// MeasureIdle starts each contender of c afresh and gives it the clients, or as many as this process may have
// descriptors for (ulimit -n).
func MeasureIdle(ctx context.Context, c Config, clients int) ([]Idle, error) {
	clients = min(clients, process.RaiseDescriptors(clients+ownDescriptors)-ownDescriptors)
	s, err := setUp(ctx, c)
	defer s.tearDown()
	if err != nil {
		return nil, err
	}
	var all []Idle
	for _, x := range s.contenders[:2] {
		c.say("%d idle clients, %s", clients, x.name)
		i, err := measureIdle(ctx, x, clients)
		if err != nil {
			return all, fmt.Errorf("cannot hold %d idle clients on %s: %w", clients, x.name, err)
		}
		all = append(all, i)
	}
	return all, nil
}

func measureIdle(ctx context.Context, x contender, clients int) (Idle, error) {
	i := Idle{Contender: x.name, Clients: clients}
	var err error
	if i.Before, err = process.Resident(x.server.ID()); err != nil {
		return i, err
	}
	if err := i.inWaves(ctx, x.server); err != nil {
		return i, err
	}
	return i, i.atOnce(ctx, x.server)
}

// inWaves connects all clients and then has them served, a wave after the other.
func (i *Idle) inWaves(ctx context.Context, proxy *process.Server) error {
	var waves []*load.Session
	defer func() {
		for _, w := range waves {
			w.Close()
		}
	}()
	for left := i.Clients; left > 0; left -= waveSize {
		w, err := load.Dial(ctx, idlePlan(proxy.Addr, min(left, waveSize)))
		if err != nil {
			return err
		}
		waves = append(waves, w)
	}
	var err error
	if i.Connected, err = settled(ctx, proxy.ID()); err != nil {
		return err
	}
	for _, w := range waves {
		if _, err := w.Run(ctx, load.Extent{Requests: 2 * waveSize}); err != nil {
			return err
		}
	}
	i.Served, err = settled(ctx, proxy.ID())
	return err
}

// atOnce connects as many new clients and has all served in the same moment.
func (i *Idle) atOnce(ctx context.Context, proxy *process.Server) error {
	s, err := load.Dial(ctx, idlePlan(proxy.Addr, i.Clients))
	if err != nil {
		return err
	}
	defer s.Close()
	// On a busy machine the last of so many may be answered with a timeout. That is told, but it is
	// not what is measured here.
	r, err := s.Run(ctx, load.Extent{Requests: 2 * i.Clients})
	if err != nil && r.Errors == 0 {
		return err
	}
	i.Failed = r.Errors
	i.Burst, err = settled(ctx, proxy.ID())
	return err
}

func idlePlan(target string, clients int) load.Plan {
	p := load.DefaultPlan(target)
	p.Connections, p.Keys = clients, 1000
	return p
}

// settled reads the memory of a process when it has not changed for a second, or after a while.
func settled(ctx context.Context, pid int) (uint64, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(settlePatience)
	last, same := uint64(0), 0
	for {
		now, err := process.Resident(pid)
		if err != nil {
			return 0, err
		}
		if same++; now != last {
			last, same = now, 0
		}
		if same >= 5 {
			return last, nil
		}
		select {
		case <-tick.C:
		case <-late:
			return last, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (i Idle) write(w io.Writer) {
	mib := func(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
	fmt.Fprintf(w, "memory, %d idle clients, %s\t%.1f MiB\t(%.1f without, %.1f connected, %.1f after a burst of all with %d errors)\ttarget <= %.0f MiB\t%s\n",
		i.Clients, i.Contender, mib(i.Served), mib(i.Before), mib(i.Connected), mib(i.Burst), i.Failed, mib(idleTarget), verdict(i.Met()))
}
