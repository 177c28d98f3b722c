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
	IdleClients = 10_000
	idleTarget  = 40 << 20
)

const settlePatience = 5 * time.Second

// Idle is the memory of a proxy with many clients that have each been served and now do nothing.
type Idle struct {
	Contender string `json:"contender"`
	Clients   int    `json:"clients"`
	Before    uint64 `json:"resident_before"`    // bytes, with no client
	Connected uint64 `json:"resident_connected"` // bytes, clients connected that never asked anything
	Served    uint64 `json:"resident_served"`    // bytes, after each has set or got a value
}

// Met reports whether the memory is within the target.
func (i Idle) Met() bool { return max(i.Connected, i.Served) <= idleTarget }

// MeasureIdle starts each contender of c afresh and gives it the clients. It needs a descriptor for
// each client here and in the contender (ulimit -n).
func MeasureIdle(ctx context.Context, c Config, clients int) ([]Idle, error) {
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
	p := load.DefaultPlan(x.server.Addr)
	p.Connections, p.Keys = clients, 1000
	session, err := load.Dial(ctx, p)
	if err != nil {
		return i, err
	}
	defer session.Close()
	if i.Connected, err = settled(ctx, x.server.ID()); err != nil {
		return i, err
	}
	if _, err := session.Run(ctx, load.Extent{Requests: 2 * clients}); err != nil {
		return i, err
	}
	i.Served, err = settled(ctx, x.server.ID())
	return i, err
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
	const mib = 1 << 20
	fmt.Fprintf(w, "memory, %d idle clients, %s\t%.1f MiB\t(%.1f without clients, %.1f before they asked)\ttarget <= %d MiB\t%s\n",
		i.Clients, i.Contender, float64(i.Served)/mib, float64(i.Before)/mib, float64(i.Connected)/mib,
		idleTarget/mib, verdict(i.Met()))
}
