package main

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"

	"cacherouter/quota"
	"cacherouter/router"

	"go.yaml.in/yaml/v3"
)

// clientsConfig bounds what the clients of a network may ask.
type clientsConfig struct {
	Network    string  `yaml:"network" doc:"Where clients come from, such as 10.0.0.0/8. The longest prefix that an address is in decides; clients of unix sockets are in none."`
	Each       bool    `yaml:"each" doc:"Bound what each address of the network may ask by itself, instead of what all of them may together."`
	Rate       float64 `yaml:"rate" doc:"Requests on keys a second, a get of several keys counted by its keys; more are answered with SERVER_ERROR network is over its rate. 0 means no bound."`
	Burst      int     `yaml:"burst" doc:"How many may come at once; 0 means as many as the rate is in 100 ms."`
	Concurrent int     `yaml:"concurrent" doc:"Requests in flight; more are answered with SERVER_ERROR network has too many requests in flight. 0 means no bound."`

	line int // in its file
}

// shedConfig says from when on requests are refused, by priority.
type shedConfig struct {
	Low    int `yaml:"low" doc:"How much a server may have in flight, of all loops together, when a request of a route with priority low comes for it; else it is shed: answered with SERVER_ERROR pool is overloaded, or as on_failure says. A request counts 1, and 1 more for each 16 KiB of value or 32 keys. 0 means any number."`
	Normal int `yaml:"normal" doc:"The same for requests of the priority that routes have which say none."`
	High   int `yaml:"high" doc:"The same for requests of priority high."`
}

// retriesConfig bounds how often reads are asked again.
type retriesConfig struct {
	Budget float64 `yaml:"budget" doc:"How many reads may be asked again as a server failed, as a share of the requests of the last 10 s: from 0 for none to 1. What is beyond fails."`
	Floor  float64 `yaml:"floor" doc:"How many may a second in any case, of all loops together."`
}

func defaultRetries() retriesConfig { return retriesConfig{Budget: 0.2, Floor: 10} }

// UnmarshalYAML reads a network and notes where it stands.
func (c *clientsConfig) UnmarshalYAML(n *yaml.Node) error {
	c.line = n.Line
	type plain clientsConfig // without this method
	return strictly(n, (*plain)(c))
}

// asRouted returns the quota as the router wants it.
func (c *clientsConfig) asRouted() (router.ClientQuota, error) {
	q := router.ClientQuota{Each: c.Each, Quota: quota.Config{Rate: c.Rate, Burst: c.Burst, Concurrent: c.Concurrent}}
	p, err := netip.ParsePrefix(c.Network)
	switch {
	case err != nil:
		return q, fmt.Errorf("%q is no network such as 10.0.0.0/8", c.Network)
	case p != p.Masked():
		return q, fmt.Errorf("%s has bits behind its prefix: want %v", c.Network, p.Masked())
	case p.Addr().Is4In6():
		return q, fmt.Errorf("%s is an IPv4 network: want it written so", c.Network)
	}
	q.Network = p
	return q, q.Quota.Validate()
}

// checkClients checks the quotas of networks.
func (c *config) checkClients() error {
	lines := make(map[string]int)
	for i := range c.Clients {
		n := &c.Clients[i]
		_, err := n.asRouted()
		if first, twice := lines[n.Network]; err == nil && twice {
			err = fmt.Errorf("%s is there twice, first in line %d", n.Network, first)
		}
		if err != nil {
			return badField(&serverError{n.line, err}, "clients")
		}
		lines[n.Network] = n.line
	}
	return nil
}

// clients returns the quotas of networks as the router wants them.
func (c *config) clients() (all []router.ClientQuota) {
	for i := range c.Clients {
		q, _ := c.Clients[i].asRouted() // checked
		all = append(all, q)
	}
	return all
}

var priorities = map[string]router.Priority{"": router.Normal, "low": router.Low, "normal": router.Normal, "high": router.High}

// quota returns what the route may be asked.
func (r *routeConfig) quota() quota.Config {
	return quota.Config{Rate: r.Rate, Burst: r.Burst, Concurrent: r.Concurrent}
}

// checkQuota checks what the route may be asked.
func (r *routeConfig) checkQuota() error {
	if _, ok := priorities[r.Priority]; !ok {
		return fmt.Errorf("priority %q is none of low, normal and high", r.Priority)
	}
	q := r.quota()
	return q.Validate()
}

// quotaText is what the route says of that, for people.
func (r *routeConfig) quotaText() (s string) {
	if r.Rate > 0 {
		s += fmt.Sprintf(", %v requests a second", r.Rate)
	}
	if r.Concurrent > 0 {
		s += fmt.Sprintf(", %d requests in flight", r.Concurrent)
	}
	if priorities[r.Priority] != router.Normal {
		s += ", priority " + r.Priority
	}
	return s
}

// asRouted returns the bounds as the router wants them.
func (s *shedConfig) asRouted() (most [router.NumPriorities]int) {
	most[router.Low], most[router.Normal], most[router.High] = s.Low, s.Normal, s.High
	return most
}

// validateOverload checks what a pool does that has too much to do.
func (p *poolConfig) validateOverload() error {
	r := &p.Retries
	low, normal, high := p.Shed.Low, p.Shed.Normal, p.Shed.High
	orAny := func(n int) int { return cmp.Or(n, math.MaxInt) }
	switch {
	case min(low, normal, high) < 0:
		return badField(fmt.Errorf("%d is negative", min(low, normal, high)), "pool", "shed")
	case orAny(low) > orAny(normal) || orAny(normal) > orAny(high):
		return badField(fmt.Errorf("low %d, normal %d, high %d: low is shed first and high last, so want them in rising order; 0 is any number", low, normal, high), "pool", "shed")
	case !(r.Budget >= 0 && r.Budget <= 1):
		return badField(fmt.Errorf("%v is not between 0 and 1", r.Budget), "pool", "retries", "budget")
	case !(r.Floor >= 0 && r.Floor <= 1e6):
		return badField(fmt.Errorf("%v is not between 0 and 1000000 a second", r.Floor), "pool", "retries", "floor")
	}
	return nil
}
