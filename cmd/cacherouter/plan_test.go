package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// tenServers is a --backends list of n servers.
func someServers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.0.0.%d:11211", i+1))
	}
	return "--backends=" + strings.Join(all, ",")
}

func planned(t *testing.T, args ...string) plan {
	t.Helper()
	status, out, errs := command(append([]string{"plan", "--json"}, args...)...)
	if status != 0 {
		t.Fatalf("%q: %s", args, errs)
	}
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// What a plan says must be what placing keys one by one says.
func TestPlanAgreesWithWhere(t *testing.T) {
	for _, d := range distributions() {
		p := planned(t, "--distribution="+d, someServers(10), "--add=10.0.0.11:11211")
		pools := [2]poolConfig{defaultConfig().Pool, defaultConfig().Pool}
		for i := range 11 {
			s := serverConfig{Weight: 1, Address: fmt.Sprintf("10.0.0.%d:11211", i+1)}
			s.Name = s.Address
			pools[1].Servers = append(pools[1].Servers, s)
		}
		pools[0].Servers = pools[1].Servers[:10]
		var tables [2]*table
		for i := range pools {
			pools[i].Distribution = d
			var err error
			if tables[i], err = buildTable(&pools[i]); err != nil {
				t.Fatal(err)
			}
		}
		const keys = 20_000
		moved := 0
		for i := range keys {
			key := []byte(fmt.Sprintf("G%d", 1_000_000+i))
			a := tables[0].Picker.Pick(nil, tables[0].KeyHash(key), 1)[0]
			b := tables[1].Picker.Pick(nil, tables[1].KeyHash(key), 1)[0]
			if a != b {
				moved++
			}
		}
		// Five standard deviations of a share measured with so many keys; hashes of 15 or
		// 16 bits, and keys that a hash does not scatter, are not drawn independently.
		if got := float64(moved) / keys; math.Abs(got-p.Moved) > 0.018 && d != "twemproxy-ketama" && !strings.HasPrefix(d, "libmemcached") {
			t.Errorf("%s: plan says %.4f moves, placing keys %.4f", d, p.Moved, got)
		}
		var before, after float64
		for _, s := range p.Servers {
			before += s.Before
			after += s.After
		}
		if math.Abs(before-1) > 1e-9 || math.Abs(after-1) > 1e-9 || len(p.Servers) != 11 {
			t.Errorf("%s: shares add up to %g and %g over %d servers", d, before, after, len(p.Servers))
		}
	}
}

// The remap storm: one server added to ten, 200,000 reads a second at a hit ratio of 0.95.
func TestPlanPredictsTheRemapStorm(t *testing.T) {
	args := []string{someServers(10), "--add=10.0.0.11:11211", "--hit-ratio=0.95", "--reads=200000"}
	p := planned(t, append(args, "--distribution=modulo")...)
	if math.Abs(p.Origin.Before-10_000) > 1e-6 || math.Round(p.Origin.During/1000) != 183 || math.Round(p.Origin.ReadsX) != 18 {
		t.Errorf("modulo: %+v", p.Origin)
	}
	for _, d := range []string{"rendezvous", "ring", "maglev"} {
		p := planned(t, append(args, "--distribution="+d)...)
		if p.Origin.ReadsX < 2.5 || p.Origin.ReadsX > 2.9 || !p.Exact {
			t.Errorf("%s: %+v", d, p.Origin)
		}
	}
}

// The cost of a change, for shares of keys measured elsewhere.
func TestOriginLoad(t *testing.T) {
	f := func(moved, miss, during, factor, extra float64) {
		t.Helper()
		c := planCmd{HitRatio: 0.9, Reads: 25000.0 / 60, Writes: 5833.3 / 60, WarmUp: 60}
		o := c.origin(moved)
		round := func(v, unit float64) float64 { return math.Round(v/unit) * unit }
		if math.Abs(round(o.MissRatio, 1e-4)-miss) > 1e-9 || math.Abs(o.During-during) > 0.006 || math.Abs(o.Factor-factor) > 0.005 || math.Abs(o.Extra-extra) > 1 {
			t.Errorf("moved %g: got %+v", moved, o)
		}
	}
	f(0.74849, 0.7736, 419.57, 3.02, 16841)
	f(0.26478, 0.3383, 238.18, 1.71, 5957)
}

func TestPlanChanges(t *testing.T) {
	p := planned(t, someServers(4), "--remove=10.0.0.4:11211")
	if p.Moved < 0.2 || p.Moved > 0.3 || p.Servers[3].After != 0 || p.Before == p.After {
		t.Errorf("removing one of four: %+v", p)
	}
	p = planned(t, someServers(4), "--reweight=10.0.0.1:11211@3")
	if p.Servers[0].After < 0.45 || p.Servers[0].After > 0.55 {
		t.Errorf("weight 3 of 6: %+v", p)
	}
	status, out, _ := command("plan", someServers(3), "--add=x=10.0.0.9:1@2")
	if status != 0 || !strings.Contains(out, "x=10.0.0.9:1") || !strings.Contains(out, "of the keys move") {
		t.Errorf("status %d:\n%s", status, out)
	}
	for _, args := range [][]string{{}, {"--remove=nobody"}, {"--reweight=x"}, {"--reweight=10.0.0.1:11211@0"}, {"--add=10.0.0.1:11211"}, {"--hit-ratio=2", "--remove=10.0.0.1:11211"}} {
		if status, _, errs := command(append([]string{"plan", someServers(3)}, args...)...); status != 1 || errs == "" {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
}
