package main

import (
	"errors"
	"fmt"
	"time"

	"cacherouter/coalesce"
	"cacherouter/epoch"
	"cacherouter/hotkey"
	"cacherouter/refresh"
	"cacherouter/router"
)

// nearConfig says what each loop keeps of hot keys.
type nearConfig struct {
	Bytes    int      `yaml:"bytes" doc:"Memory of each loop for the values of hot keys, at least 4096; 0 means that none are kept."`
	TTL      duration `yaml:"ttl" doc:"How long a value is used, at most 1s: so long a write through another router may go unseen."`
	MaxValue int      `yaml:"max_value" doc:"The largest value kept, in bytes; 0 means an eighth of bytes."`
}

// limitConfig bounds the rate of hot keys.
type limitConfig struct {
	Rate  float64 `yaml:"rate" doc:"Requests a second that one hot key may have; more are answered with SERVER_ERROR key has too many requests. 0 means no limit."`
	Burst int     `yaml:"burst" doc:"How many may come at once; 0 means as many as the rate is in 100 ms."`
}

// leaseConfig says how misses are held back.
type leaseConfig struct {
	Enabled   bool     `yaml:"enabled" doc:"Whether of all who miss a key one at a time is shown the miss, while the others wait for it to store the value."`
	Time      duration `yaml:"time" doc:"How long the one is waited for."`
	Patience  duration `yaml:"patience" doc:"How long a client may have gets waiting, in all."`
	Fruitless int      `yaml:"fruitless" doc:"After how many leases of a key in a row that nobody used its misses are shown to all for a while; 0 means never."`
}

// refreshConfig says how items near their end are renewed.
type refreshConfig struct {
	Before duration `yaml:"before" doc:"How long before an item's end one client is shown a miss, so that it stores a new value while the others still get the old one; whole seconds, well below the life of the items. 0s means never. The servers must be memcached 1.6 or later."`
	Vivify duration `yaml:"vivify" doc:"How long all routers together hold back misses of a key but one; whole seconds, 0s means not at all. Needs lease.enabled, and is only for pools that are used through routers alone, by get, gets, set and delete; see hotkeys.md."`
}

func defaultNear() nearConfig { return nearConfig{TTL: duration(time.Second)} }

func defaultLease() leaseConfig {
	return leaseConfig{Time: duration(200 * time.Millisecond), Patience: duration(router.DefaultPatience)}
}

// validateRemedies checks what spares servers hot and missing keys.
func (p *poolConfig) validateRemedies() error {
	counted := p.Hot.Enabled
	switch {
	case p.Near.Bytes == 0:
	case !counted:
		return badField(errors.New("no key is hot while hot.enabled is false"), "pool", "near", "bytes")
	case p.Coalesce == "off":
		return badField(errors.New("needs coalesce: strict or inflight"), "pool", "near", "bytes")
	default:
		near := *p.Near.config()
		near.Epochs = epoch.New(1)
		if _, err := hotkey.NewNear(near); err != nil {
			return badField(err, "pool", "near")
		}
	}
	if l := p.Limit.config(); l != nil {
		if !counted {
			return badField(errors.New("no key is hot while hot.enabled is false"), "pool", "limit", "rate")
		}
		if _, err := hotkey.NewLimiter(*l); err != nil {
			return badField(err, "pool", "limit")
		}
	}
	if l := p.Lease.config(); l != nil {
		if p.Coalesce == "off" {
			return badField(errors.New("needs coalesce: strict or inflight"), "pool", "lease", "enabled")
		}
		if _, err := coalesce.NewLeases[int](*l); err != nil {
			return badField(err, "pool", "lease")
		}
	}
	r := p.Refresh.config()
	if err := r.Validate(); err != nil {
		return badField(err, "pool", "refresh")
	}
	if r.Before > 0 && p.Coalesce == "off" {
		return badField(errors.New("needs coalesce: strict or inflight"), "pool", "refresh", "before")
	}
	if r.Vivify > 0 && r.Before == 0 {
		return badField(fmt.Errorf("%v needs before: a time over 0s", r.Vivify), "pool", "refresh", "vivify")
	}
	if r.Vivify > 0 && !p.Lease.Enabled {
		return badField(errors.New("needs lease.enabled: true, as misses are held back by leases"), "pool", "refresh", "vivify")
	}
	return nil
}

// config returns the settings for the router, nil for no near cache.
func (n *nearConfig) config() *hotkey.NearConfig {
	if n.Bytes == 0 {
		return nil
	}
	return &hotkey.NearConfig{Bytes: n.Bytes, TTL: time.Duration(n.TTL), MaxValue: n.MaxValue}
}

func (l *limitConfig) config() *hotkey.LimitConfig {
	if l.Rate == 0 {
		return nil
	}
	return &hotkey.LimitConfig{Rate: l.Rate, Burst: l.Burst}
}

func (l *leaseConfig) config() *coalesce.LeaseConfig {
	if !l.Enabled {
		return nil
	}
	return &coalesce.LeaseConfig{Duration: time.Duration(l.Time), Fruitless: l.Fruitless}
}

func (r *refreshConfig) config() refresh.Config {
	return refresh.Config{Before: time.Duration(r.Before), Vivify: time.Duration(r.Vivify)}
}
