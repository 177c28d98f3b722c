package main

import (
	"log/slog"

	"cacherouter/balance"
	"cacherouter/membership/probe"
	"cacherouter/meter"
	"cacherouter/router"
)

// meterFor returns what asks a pool's servers for their load, while reads are balanced by
// that.
func meterFor(p *served, log *slog.Logger) *meter.Meter {
	return meter.New(meter.Config{
		Servers: func() []meter.Server { return reporting(p.pool.Load().Table()) },
		Asker:   probe.TCP{Dial: p.up.dial, User: p.up.user, Password: p.up.password},
		Sink:    p,
		Log:     log,
	})
}

// reporting returns the servers of a table whose load has to be known: those that are read
// from.
func reporting(t *router.Table) (all []meter.Server) {
	if t.Copies < 2 || t.Balance.Policy != balance.Reported {
		return nil
	}
	for i := range t.Servers {
		if s := &t.Servers[i]; s.Reads == router.ReadHere {
			all = append(all, meter.Server{Name: s.Name, Address: s.Address})
		}
	}
	return all
}
