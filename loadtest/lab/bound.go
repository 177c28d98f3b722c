package lab

import (
	"fmt"
	"math"

	"cacherouter/bounded"
	"cacherouter/loadtest/lab/plot"
)

// The experiments of this file repeat simulations whose figures are given as the source's. Homes are
// drawn anew here, so that shares of requests that leave home differ by some points, and bounds
// do not.

// paper is the bound without our floor and depth.
func paper(perMille int) bounded.Config {
	return bounded.Config{PerMille: perMille, Floor: 1, Depth: closedServers - 1}
}

// points is by how many percentage points a share that leaves home may differ from the source's.
func points(source float64) float64 { return 0.5 + float64(0.12*source) }

// admitted says whether any bound let a request above it.
func admitted(r *report, all []measured) {
	above := 0
	for _, m := range all {
		above += m.above
	}
	r.claim(fmt.Sprintf("of %d requests %d were admitted above a bound", len(all)*closedRequests, above), above == 0)
}

func boundFactor(r *report) error {
	loads, factors := []float64{0.5, 2, 8, 32}, []int{1100, 1250, 1500, 2000}
	// The source's fullest server by the mean, and share that leaves home, in percent.
	peaks := [][]float64{{2, 2, 2, 4}, {1.5, 1.5, 2, 2.5}, {1.125, 1.375, 1.625, 2.125}, {1.125, 1.281, 1.531, 2.031}}
	spills := [][]float64{{52.5, 52.5, 52.5, 12.1}, {40.6, 40.6, 19.4, 10.1}, {49.1, 24.0, 14.8, 6.9}, {29.1, 18.7, 12.1, 5.6}}
	var systems []closed
	for _, load := range loads {
		for _, c := range factors {
			systems = append(systems, closed{zipf: 1, load: load, bound: paper(c)})
		}
	}
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.compare()
	var series []plot.Series
	for i, load := range loads {
		s := plot.Series{Name: fmt.Sprintf("%v in flight", load)}
		for j, c := range factors {
			m := all[i*len(factors)+j]
			what := fmt.Sprintf("%v in flight per server, c = %v: ", load, float64(c)/1000)
			r.near(what+"fullest by the mean", "%.2f", m.peak, peaks[i][j], 0.006)
			r.near(what+"left home, %", "%.1f", 100*m.spilled, spills[i][j], points(spills[i][j]))
			s.X, s.Y = append(s.X, float64(c)/1000), append(s.Y, 100*m.spilled)
		}
		series = append(series, s)
	}
	admitted(r, all)
	r.lines("Requests that leave home, 20 servers, Zipf 1.0", "c", "%", series...)
	return nil
}

func boundFloor(r *report) error {
	loads, floors := []float64{0.5, 2, 8}, []int{1, 2, 4, 8}
	spills := [][]float64{{52.5, 12.1, 0.6, 0}, {40.6, 40.6, 19.4, 1.7}, {24, 24, 24, 24}}
	var systems []closed
	for _, load := range loads {
		for _, floor := range floors {
			c := paper(1250)
			c.Floor = floor
			systems = append(systems, closed{zipf: 1, load: load, bound: c})
		}
	}
	systems = append(systems, closed{zipf: 1, load: 0.5, bound: bounded.Default(ones(closedServers))})
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.compare()
	series := make([]plot.Series, len(loads))
	for i, load := range loads {
		series[i].Name = fmt.Sprintf("%v in flight", load)
		for j, floor := range floors {
			m := all[i*len(floors)+j]
			r.near(fmt.Sprintf("%v in flight per server, floor %d: left home, %%", load, floor), "%.1f", 100*m.spilled, spills[i][j], points(spills[i][j]))
			series[i].X, series[i].Y = append(series[i].X, float64(floor)), append(series[i].Y, 100*m.spilled)
		}
	}
	byDefault := all[len(all)-1]
	r.claim(fmt.Sprintf("by default %.2f %% leave home with half a request in flight per server, less than 1 %%", 100*byDefault.spilled), byDefault.spilled < 0.01)
	admitted(r, all)
	r.lines("Requests that leave home, c = 1.25", "floor", "%", series...)
	return nil
}

func boundDepth(r *report) error {
	const least, most = 0, 6
	said := map[int]float64{1: 3.00, 2: 2.25, 3: 1.88, closedServers - 1: 1.38}
	spilled := map[int]float64{1: 18.9, 2: 23.6, 3: 23.9, closedServers - 1: 24.0}
	depths := []int{0, 1, 2, 3, 4, 5, 6, closedServers - 1}
	var systems []closed
	for _, d := range depths {
		systems = append(systems, closed{zipf: 1, load: 8, bound: bounded.Config{PerMille: 1250, Floor: 1, Depth: d}})
	}
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.begin("", "fullest", "source", "left home", "source", "copies", "")
	falls, alike := true, true
	s := plot.Series{Name: "99.9th percentile"}
	for i, d := range depths {
		m := all[i]
		row := []string{fmt.Sprintf("depth %d", d), fmt.Sprintf("%.2f", m.p999), "", percent(m.spilled), "", fmt.Sprintf("%.2f", m.copies), ""}
		if said[d] > 0 {
			alike = alike && math.Abs(m.p999-said[d]) <= 0.5 && math.Abs(100*m.spilled-spilled[d]) < points(spilled[d])
			row[2], row[4] = fmt.Sprintf("%.2f", said[d]), fmt.Sprintf("%.1f %%", spilled[d])
		}
		r.row(row...)
		falls = falls && (i == 0 || m.p999 <= all[i-1].p999)
		if d <= most && d >= least {
			s.X, s.Y = append(s.X, float64(d)), append(s.Y, m.p999)
		}
	}
	r.claim("the fullest is within 0.5 of the source's, and what leaves home within 3 percentage points", alike)
	r.claim("each candidate more makes the fullest server less full", falls)
	r.claim("all candidates keep the bound, 1.38", all[len(all)-1].p999 <= 1.376)
	r.claim("the first one brings most", all[0].p999-all[1].p999 > all[1].p999-all[2].p999)
	r.lines("Fullest server by the mean, 8 in flight per server, c = 1.25", "candidates after the home", "times the mean", s)
	return nil
}

func boundSkew(r *report) error {
	zipfs, spilled := []float64{0.8, 1, 1.2}, []float64{14.3, 24, 39.6}
	var systems []closed
	for _, z := range zipfs {
		systems = append(systems, closed{zipf: z, load: 8, bound: paper(1250)}, closed{zipf: z, load: 8})
	}
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.compare()
	with, without := plot.Series{Name: "bound", X: zipfs}, plot.Series{Name: "no bound", X: zipfs}
	for i, z := range zipfs {
		m := all[2*i]
		r.near(fmt.Sprintf("Zipf %v: fullest by the mean", z), "%.3f", m.peak, 1.375, 0.001)
		r.near(fmt.Sprintf("Zipf %v: left home, %%", z), "%.1f", 100*m.spilled, spilled[i], points(spilled[i]))
		with.Y, without.Y = append(with.Y, m.p999), append(without.Y, all[2*i+1].p999)
	}
	admitted(r, all)
	r.lines("Fullest server by the mean, 8 in flight per server", "Zipf", "times the mean", with, without)
	return nil
}

// boundRouters measures the fullest server behind routers that count for themselves against
// c + (c+n)R/T, with n servers, R routers and T requests in flight.
func boundRouters(r *report) error {
	loads, routers := []float64{2, 8, 32}, []int{1, 4, 16, 64}
	said := [][]float64{{1.5, 3, 6.5, 7.5}, {1.38, 1.75, 2.25, 3.88}, {1.28, 1.41, 1.59, 1.75}}
	var systems []closed
	for _, load := range loads {
		for _, n := range routers {
			systems = append(systems, closed{zipf: 1, load: load, routers: n, bound: paper(1250)})
		}
	}
	systems = append(systems, closed{zipf: 1, load: 2})
	all, err := runAll(systems)
	if err != nil {
		return err
	}
	r.begin("", "fullest", "source", "at most", "left home", "")
	within, alike := true, true
	series := make([]plot.Series, len(loads))
	for i, load := range loads {
		series[i].Name = fmt.Sprintf("%v in flight", load)
		for j, n := range routers {
			m := all[i*len(routers)+j]
			limit := 1.25 + float64((1.25+closedServers)*float64(n))/float64(load*closedServers)
			within = within && m.peak <= limit
			alike = alike && math.Abs(m.peak-said[i][j]) <= 0.2*said[i][j]
			r.row(fmt.Sprintf("%v in flight per server, %d routers", load, n), fmt.Sprintf("%.2f", m.peak), fmt.Sprintf("%.2f", said[i][j]), fmt.Sprintf("%.2f", limit), percent(m.spilled), "")
			series[i].X, series[i].Y = append(series[i].X, float64(n)), append(series[i].Y, m.peak)
		}
	}
	r.claim("the fullest is never above c + (c+n)R/T", within)
	r.claim("it is within a fifth of the source's", alike)
	few, none := all[3], all[len(all)-1]
	r.claim(fmt.Sprintf("with less in flight at a router than there are servers nothing is protected: %.2f, without a bound %.2f", few.p999, none.p999), few.p999 >= 0.75*none.p999)
	admitted(r, all)
	r.lines("Fullest server by the mean, c = 1.25", "routers", "times the mean", series...)
	return nil
}
