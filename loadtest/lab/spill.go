package lab

import (
	"errors"
	"fmt"
	"time"

	"cacherouter/loadtest/lab/fleet"
	"cacherouter/loadtest/lab/plot"
)

const (
	spillServers = 8
	spillKeys    = 100_000
)

var (
	spillZipfs    = []float64{0.9, 0.99, 1.2}
	spillRouters  = []int{1, 3, 20}
	spillPolicies = []fleet.Policy{fleet.None, fleet.Hot, fleet.Any, fleet.Auto, fleet.Walk}
)

// situation is what a fleet has to cope with.
type situation struct {
	name string
	load float64
	slow int
}

// A server at a tenth of its speed is asked for somewhat more than it can do in the second one, as 12 % of
// what all could do is 120 % of a tenth.
var situations = []situation{
	{"busy: 55 % of what the servers can do", 0.55, 1},
	{"slow: one server at a tenth of its speed, at 12 % of what all could do", 0.12, 10},
}

// spillRow is one run.
type spillRow struct {
	situation int
	zipf      int // index
	routers   int
	policy    fleet.Policy
	floor     int
	fleet.Outcome
}

func (x *spillRow) config() fleet.Config {
	s := situations[x.situation]
	return fleet.Config{Policy: x.policy, Routers: x.routers, Load: s.load, Slow: s.slow, Depth: 2, Floor: x.floor, Writes: 0.01, Cached: 0.6, Seed: 1, WarmUp: 11 * time.Second, Measured: 8 * time.Second}
}

func spill(r *report) error {
	var rows []spillRow
	for z := range spillZipfs {
		for i := range situations {
			for _, n := range spillRouters {
				for _, p := range spillPolicies {
					if p == fleet.None && n > 1 {
						continue // without a bound it is the same however many there are
					}
					rows = append(rows, spillRow{situation: i, zipf: z, routers: n, policy: p, floor: 8})
				}
			}
		}
	}
	if err := runSpills(rows); err != nil {
		return err
	}
	for i := range situations {
		spillTable(r, i, rows, func(x *spillRow) string { return fmt.Sprintf("Zipf %v, %s", spillZipfs[x.zipf], x.policy) })
		spillClaims(r, i, rows)
		spillChart(r, i, rows)
	}
	r.note("Latencies are the cache's: a client that is told of a miss asks the origin besides.")
	return nil
}

// spillFloor has twenty routers share what one may have as floor.
func spillFloor(r *report) error {
	var rows []spillRow
	for i := range situations {
		for _, floor := range []int{8, 4, 2, 1} {
			rows = append(rows, spillRow{situation: i, zipf: 1, routers: 20, policy: fleet.Auto, floor: floor})
		}
	}
	if err := runSpills(rows); err != nil {
		return err
	}
	series := make([]plot.Series, len(situations))
	for i, s := range situations {
		spillTable(r, i, rows, func(x *spillRow) string {
			return fmt.Sprintf("Zipf %v, %s, floor %d", spillZipfs[x.zipf], x.policy, x.floor)
		})
		of := rows[4*i : 4*i+4]
		r.claim("a lower floor brings a lower p99", of[0].P99 > of[2].P99)
		r.claim(fmt.Sprintf("it costs at most 1 %% of hits: %.2f %% with floor 8, %.2f %% with floor 1", 100*of[0].Hits, 100*of[3].Hits), of[0].Hits-of[3].Hits < 0.01)
		series[i].Name = s.name[:4]
		for _, x := range of {
			series[i].X, series[i].Y = append(series[i].X, float64(x.floor)), append(series[i].Y, x.P99.Seconds()*1000)
		}
	}
	r.lines("Twenty routers, spill auto, Zipf 0.99", "floor of each", "p99, ms", series...)
	return nil
}

// spillTable prints the runs of a situation.
func spillTable(r *report, situation int, rows []spillRow, name func(*spillRow) string) {
	r.begin(situations[situation].name, "routers", "in flight", "fullest", "p99 of it", "left home", "found there", "hits", "failed", "stale", "p50", "p99", "")
	for i := range rows {
		if x := &rows[i]; x.situation == situation {
			r.row(name(x), fmt.Sprint(x.routers), fmt.Sprintf("%.1f", x.InFlight), fmt.Sprintf("%.2f", x.Fullest), fmt.Sprintf("%.2f", x.Fullest99),
				percent(x.Spilled), percent(x.CopyHits), fmt.Sprintf("%.2f %%", 100*x.Hits), fmt.Sprintf("%.2f %%", 100*x.Failed), fmt.Sprint(x.Stale), milliseconds(x.P50), milliseconds(x.P99), "")
		}
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// runSpills runs all rows side by side.
func runSpills(rows []spillRow) error {
	var worlds [3]*fleet.World
	for z, zipf := range spillZipfs {
		w, err := fleet.NewWorld(spillServers, spillKeys, zipf)
		if err != nil {
			return err
		}
		worlds[z] = w
	}
	errs := make([]error, len(rows))
	each(len(rows), func(i int) {
		rows[i].Outcome, errs[i] = fleet.Run(worlds[rows[i].zipf], rows[i].config())
	})
	return errors.Join(errs...)
}

// find returns a run.
func find(rows []spillRow, situation, zipf, routers int, policy fleet.Policy) *spillRow {
	for i := range rows {
		if x := &rows[i]; x.situation == situation && x.zipf == zipf && x.routers == routers && x.policy == policy {
			return x
		}
	}
	panic("bug: no such run")
}

// policies are the runs of one skew through one router.
type policies struct{ none, hot, any, auto, walk *spillRow }

// spillClaims says what the tables show.
func spillClaims(r *report, situation int, rows []spillRow) {
	all := func(what string, ok func(p policies) bool) {
		good := true
		for z := range spillZipfs {
			of := func(p fleet.Policy) *spillRow { return find(rows, situation, z, 1, p) }
			good = good && ok(policies{of(fleet.None), of(fleet.Hot), of(fleet.Any), of(fleet.Auto), of(fleet.Walk)})
		}
		r.claim(what, good)
	}
	if situation == 0 {
		all("spilling hot keys costs no hits: within 0.2 % of no bound", func(p policies) bool { return min(p.hot.Hits, p.auto.Hits) > p.none.Hits-0.002 })
		all("spilling any key costs hits, as copies take the room of items", func(p policies) bool { return p.any.Hits < p.hot.Hits-0.002 })
		all("it is the most even of ours but no faster: a cold key's copy is not there, and to ask twice takes twice as long",
			func(p policies) bool { return p.any.Fullest < p.hot.Fullest && p.any.P99 >= p.hot.P99 })
		all("the ring walk loses the most hits, and returns old values", func(p policies) bool { return p.walk.Hits < p.any.Hits && p.walk.Stale > 0 })
	} else {
		all("hot leaves the slow server's other keys with it; any does not: p99 below a third, and nothing fails",
			func(p policies) bool { return p.any.P99 < p.hot.P99/3 && p.any.Failed == 0 })
		all("auto does as any when it has to: nothing fails, p99 at most twice any's", func(p policies) bool { return p.auto.Failed == 0 && p.auto.P99 <= 2*p.any.P99 })
		all("hits of any and auto are within 1 % of no bound", func(p policies) bool { return min(p.any.Hits, p.auto.Hits) > p.none.Hits-0.01 })
	}
	stale := 0
	for _, x := range rows {
		if x.situation == situation && x.policy != fleet.Walk && x.routers == 1 {
			stale += x.Stale
		}
	}
	r.claim(fmt.Sprintf("old values through one router of ours: %d", stale), stale == 0)
}

func spillChart(r *report, situation int, rows []spillRow) {
	var p99, hits []plot.Series
	var groups []string
	for _, z := range spillZipfs {
		groups = append(groups, fmt.Sprintf("Zipf %v", z))
	}
	for _, p := range spillPolicies {
		a, b := plot.Series{Name: string(p)}, plot.Series{Name: string(p)}
		for z := range spillZipfs {
			x := find(rows, situation, z, 1, p)
			a.Y, b.Y = append(a.Y, x.P99.Seconds()*1000), append(b.Y, 100*(1-x.Hits))
		}
		p99, hits = append(p99, a), append(hits, b)
	}
	r.bars("p99, one router; "+situations[situation].name, "ms", true, groups, p99...)
	r.bars("Misses, one router; "+situations[situation].name, "%", false, groups, hits...)
}
