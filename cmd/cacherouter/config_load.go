package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"cacherouter/balance"
	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/router"
)

// boundConfig says how much a server may have in flight.
type boundConfig struct {
	Spill  string  `yaml:"spill" doc:"Which keys are read from their next candidates while their home is at its bound: hot, any, or none, which means no bound."`
	Factor float64 `yaml:"factor" doc:"How many times its share of what is in flight a server may have, at least 1. Between 1.25 and 2 is usual."`
	Floor  int     `yaml:"floor" doc:"How many requests every server may have in flight whatever the others do, at least 1."`
	Depth  int     `yaml:"depth" doc:"How many candidates after the home may be read from, each one more server to clean after a write; 0 means 2, or as many as there are."`
}

// copiesConfig says on how many servers each item lives.
type copiesConfig struct {
	Number  int    `yaml:"number" doc:"On how many servers each item lives. Reads go to any of them, writes to all."`
	Balance string `yaml:"balance" doc:"How a read chooses among them: round_robin, weighted_round_robin, edf, random, least_request, weighted_least_request, p2c, peak_ewma or reported."`
	Zones   bool   `yaml:"zones" doc:"One copy of each item in every zone that the servers are in, in place of a number. Reads go to the copy in the router's own zone while it can be used."`
	Answer  string `yaml:"answer" doc:"When a write is answered: all, when every copy is the same, or home, when the home has it; reads then go to the home until the others have it too."`
}

// largeConfig says which values are stored in parts.
type largeConfig struct {
	SplitOver int `yaml:"split_over" doc:"The length in bytes of the longest value that is stored as it is; longer ones are stored in parts of that length, spread over the servers. Some kilobytes less than the servers' -I: 1000000 for the usual 1 MiB. 0 means that none is split; see routes.md."`
}

// check says what is wrong with it, where values have at most so many bytes.
func (l *largeConfig) check(maxValue int) error {
	switch {
	case l.SplitOver == 0:
	case l.SplitOver < router.MinSplit:
		return badField(fmt.Errorf("%d is less than %d bytes", l.SplitOver, router.MinSplit), "pool", "large_values", "split_over")
	case l.SplitOver >= maxValue:
		return badField(fmt.Errorf("%d is not less than max_value, %d: no value would be split", l.SplitOver, maxValue), "pool", "large_values", "split_over")
	}
	return nil
}

// hotConfig says what makes a key hot.
type hotConfig struct {
	Enabled  bool    `yaml:"enabled" doc:"Whether keys are counted to find the hot ones."`
	Share    float64 `yaml:"share" doc:"The part of a server's fair share of the requests from which a key is hot; twice that is severe."`
	MinShare float64 `yaml:"min_share" doc:"The share of all requests below which no key is hot."`
	MinRate  float64 `yaml:"min_rate" doc:"The requests a second below which no key is hot."`
	MinBytes float64 `yaml:"min_bytes" doc:"The bytes a second below which no key is hot because of its bytes."`
}

func defaultBound() boundConfig { return boundConfig{Spill: "hot", Factor: 1.25, Floor: 8} }

func defaultCopies() copiesConfig {
	return copiesConfig{Number: 1, Balance: balance.P2C, Answer: "all"}
}

func defaultHot() hotConfig {
	return hotConfig{Enabled: true, Share: 0.25, MinShare: 0.001, MinRate: 500, MinBytes: 4 << 20}
}

var spills = map[string]router.Spill{"none": router.SpillNone, "hot": router.SpillHot, "any": router.SpillAny}

// modes are the ways in which gets share requests.
var modes = map[string]*coalesce.Config{"off": nil, "strict": {Mode: coalesce.Strict}, "inflight": {Mode: coalesce.Inflight}}

// validateLoad checks how load is spread. Servers that are found later are not known here.
func (p *poolConfig) validateLoad() error {
	b, c, n := &p.Bound, &p.Copies, len(p.Servers)
	known := n > 0 && p.dynamic() == ""
	_, spill := spills[b.Spill]
	_, mode := modes[p.Coalesce]
	switch {
	case !spill:
		return badField(fmt.Errorf("%q is none of none, hot and any", b.Spill), "pool", "bound", "spill")
	case !(b.Factor >= 1 && b.Factor <= 1000):
		return badField(fmt.Errorf("%v is not between 1 and 1000: below 1 the servers together could not take what is in flight", b.Factor), "pool", "bound", "factor")
	case b.Floor < 1:
		return badField(fmt.Errorf("%d is less than 1: a server must be allowed a request", b.Floor), "pool", "bound", "floor")
	case b.Depth < 0 || b.Depth > router.MaxDepth:
		return badField(fmt.Errorf("%d is not between 0 and %d", b.Depth, router.MaxDepth), "pool", "bound", "depth")
	case known && b.Depth >= n:
		return badField(fmt.Errorf("%d servers have %d candidates after the home, not %d", n, n-1, b.Depth), "pool", "bound", "depth")
	case c.Number < 1 || c.Number > router.MaxCopies:
		return badField(fmt.Errorf("%d is not between 1 and %d", c.Number, router.MaxCopies), "pool", "copies", "number")
	case known && c.Number > n:
		return badField(fmt.Errorf("%d copies need as many servers: there are %d", c.Number, n), "pool", "copies", "number")
	case !slices.Contains(balance.Policies(), c.Balance):
		return badField(fmt.Errorf("unknown policy %q: want one of %s", c.Balance, strings.Join(balance.Policies(), " ")), "pool", "copies", "balance")
	case c.Zones && !known:
		return badField(errors.New("servers that are found while the router runs have no zones"), "pool", "copies", "zones")
	case c.Zones && c.Number != 1:
		return badField(errors.New("is instead of a number, which is there, too"), "pool", "copies", "zones")
	case c.Zones:
		return p.checkZones()
	case c.Answer != "all" && c.Answer != "home":
		return badField(fmt.Errorf("%q is neither all nor home", c.Answer), "pool", "copies", "answer")
	case !mode:
		return badField(fmt.Errorf("%q is none of off, strict and inflight", p.Coalesce), "pool", "coalesce")
	}
	if h := &p.Hot; !(h.Share > 0 && h.Share <= 1) {
		return badField(fmt.Errorf("%v is not over 0 and at most 1", h.Share), "pool", "hot", "share")
	}
	if b.Spill == "hot" && !p.Hot.Enabled {
		return badField(errors.New("no key is hot while hot.enabled is false: want none or any"), "pool", "bound", "spill")
	}
	if p.Hot.Enabled {
		if _, err := hotkey.NewCollector(p.Hot.config()); err != nil {
			return badField(err, "pool", "hot")
		}
	}
	return nil
}

// config returns the settings for the router.
func (h *hotConfig) config() hotkey.Config {
	return hotkey.Config{Servers: 1, Hot: h.Share, Severe: 2 * h.Share, MinShare: h.MinShare, MinRate: h.MinRate, MinBytes: h.MinBytes}
}

// spread says in a table how its load is spread. Weights are those of its servers, 0 for
// one that holds no keys; shares, by the name of a server, are how much of it it may get
// now, per mille. The bound goes on counting where that of the table before has stopped.
func (p *poolConfig) spread(t, before *router.Table, weights []int, shares map[string]int) error {
	placed := 0
	for _, w := range weights {
		if w > 0 {
			placed++
		}
	}
	t.Spill = spills[p.Bound.Spill]
	if t.Copies = min(p.numCopies(p.Servers), placed); t.Copies > 1 {
		t.Balance = balance.Default(p.balanceWeights(t, weights, shares))
		t.Balance.Policy = p.Copies.Balance
	}
	if t.Spill == router.SpillNone && p.Shed == (shedConfig{}) {
		return nil
	}
	c := bounded.Default(weights)
	c.PerMille, c.Floor = int(math.Round(p.Bound.Factor*1000)), p.Bound.Floor
	if p.Bound.Depth > 0 {
		c.Depth = p.Bound.Depth
	}
	c.Depth = min(c.Depth, placed-1)
	var err error
	if before == nil || before.Bound == nil {
		t.Bound, err = bounded.New(c)
	} else {
		t.Bound, err = before.Bound.Next(c, origins(t, before))
	}
	return err
}

// origins returns where each server of a table stood in the one before, -1 if it did not.
func origins(t, before *router.Table) []int {
	at := make(map[router.Server]int)
	id := func(s router.Server) router.Server { return router.Server{Name: s.Name, Address: s.Address} }
	for i, s := range before.Servers {
		at[id(s)] = i
	}
	from := make([]int, len(t.Servers))
	for i, s := range t.Servers {
		from[i] = -1
		if j, ok := at[id(s)]; ok {
			from[i] = j
		}
	}
	return from
}

// balanceWeights returns the weights by which copies are chosen: finer than those of the
// placement, so that a server that is new can have a part of one.
func (p *poolConfig) balanceWeights(t *router.Table, weights []int, shares map[string]int) []int {
	const fine = 20
	heaviest := slices.Max(weights)
	out := make([]int, len(weights))
	for i, w := range weights {
		share := 1000
		if s, ok := shares[t.Servers[i].Name]; ok {
			share = s
		}
		out[i] = max(1, w*min(fine, balance.MaxWeight/heaviest)*share/1000)
	}
	return out
}
