package lab

import (
	"fmt"
	"math"
	"time"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/membership/health"
)

// watched is a router's pool of servers, with a clock.
type watched struct {
	*health.Pool
	now    time.Time
	ticked time.Time
}

func watch(c health.Config, known bool, servers ...string) *watched {
	w := &watched{now: time.Unix(0, 0)}
	w.ticked = w.now
	w.Pool = health.NewPool(c, w.now)
	for _, s := range servers {
		w.Add(s, known, w.now)
	}
	return w
}

// pass lets time pass as in a router, which takes its turns ten times a second.
func (w *watched) pass(d time.Duration) {
	until := w.now.Add(d)
	for next := w.ticked.Add(100 * time.Millisecond); !next.After(until); next = next.Add(100 * time.Millisecond) {
		w.Tick(next)
		w.ticked = next
	}
	w.now = until
}

func (w *watched) fails(server string) {
	w.Observe(server, health.Observation{Refused: 1, Streak: 1}, w.now)
}

func (w *watched) answers(server string, n int, took time.Duration) {
	w.Observe(server, health.Observation{OK: n, Latency: time.Duration(n) * took}, w.now)
}

// ejection has observers that each send a dead server so many requests a second, until they take it out.
func ejected(fall, observers int, perSecond float64) (lost int, last time.Duration) {
	for range observers {
		w := watch(health.Config{Fall: fall}, true, "a", "b", "c")
		began := w.now
		for w.Usable("a") {
			w.pass(time.Duration(float64(time.Second) / perSecond))
			w.fails("a")
			lost++
		}
		last = max(last, w.now.Sub(began))
	}
	return lost, last
}

func ejection(r *report) error {
	r.begin("400 callers, 100 requests/s each, one of 200 servers dies", "ours", "source", "")
	var lost []float64
	for _, x := range []struct {
		what      string
		observers int
		perSecond float64
		want      string
	}{
		{"each caller asks all: out after, requests lost", 400, 0.5, "10s, 2000"},
		{"each asks a subset of 20", 40, 5, "1s, 200"},
		{"four proxies ask all", 4, 50, "100ms, 20"},
	} {
		n, last := ejected(5, x.observers, x.perSecond)
		r.exact(x.what, fmt.Sprintf("%v, %d", last, n), x.want)
		lost = append(lost, float64(n))
	}
	n, last := ejected(0, 4, 50)
	r.row("four routers, out after our three errors in a row", fmt.Sprintf("%v, %d", last, n), "", "")
	r.bars("Requests lost before a dead server is out", "requests", true, []string{"each to all", "subsets of 20", "four proxies", "ours"}, plot.Series{Name: "lost", Y: append(lost, float64(n))})
	return nil
}

// errorsAfterDeath are those of 600 requests, 200 a second in turn to three servers, of which one is dead from the 200th on.
func errorsAfterDeath(passive, active bool) (errors int) {
	names := []string{"a", "b", "c"}
	w := watch(health.Config{Fall: 2, Interval: 500 * time.Millisecond}, true, names...)
	if passive {
		w = watch(health.Config{}, true, names...)
	}
	turn := 0
	for n := range 600 {
		w.pass(5 * time.Millisecond)
		dead := n >= 200
		if active && n%100 == 99 { // each 500 ms
			for _, s := range names {
				w.Probe(s, !(dead && s == "b"), w.now, w.now)
			}
		}
		for !w.Usable(names[turn%3]) {
			turn++
		}
		s := names[turn%3]
		turn++
		switch {
		case !dead || s != "b":
			w.answers(s, 1, 20*time.Millisecond)
		case passive:
			errors++
			w.fails(s)
		default:
			errors++
		}
	}
	return errors
}

func checks(r *report) error {
	blind, active, both := errorsAfterDeath(false, false), errorsAfterDeath(false, true), errorsAfterDeath(true, true)
	r.compare()
	r.near("errors without checks", "%.0f", float64(blind), 133, 1)
	r.shape("with an active one each 500 ms, two failures of which count", fmt.Sprint(active), "35", active >= 33 && active <= 67)
	r.shape("ours: what requests meet, and active ones", fmt.Sprint(both), "both are needed", both <= 5)
	r.note("The active one takes half a second to a second, depending on when it comes; at 67 requests a second that is 33 to 67 errors.")
	r.bars("Errors after one of three servers dies", "of 600 requests", false, []string{"none", "active", "ours"}, plot.Series{Name: "errors", Y: []float64{float64(blind), float64(active), float64(both)}})
	return nil
}

func slowStart(r *report) error {
	r.begin("weight, per mille", "ours", "source", "")
	var series []plot.Series
	for _, aggression := range []float64{1, 2} {
		c := health.Config{Aggression: aggression}.WithDefaults()
		s := plot.Series{Name: fmt.Sprintf("aggression %v", aggression)}
		for _, share := range []float64{0, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2} {
			elapsed := time.Duration(float64(c.SlowStart) * share)
			want := math.Round(1000 * max(0.1, math.Pow(min(share, 1), 1/aggression)))
			r.exact(fmt.Sprintf("aggression %v, after %v of %v", aggression, elapsed, c.SlowStart), fmt.Sprint(c.Ramp(elapsed)), fmt.Sprintf("%.0f", want))
			s.X, s.Y = append(s.X, elapsed.Seconds()), append(s.Y, float64(c.Ramp(elapsed)))
		}
		series = append(series, s)
	}
	r.note("The source gives the formula, max(minimum, (elapsed/window)^(1/aggression)), with a minimum of 10 %%.")
	r.lines("Weight of a server that has come back", "s", "per mille", series...)
	return nil
}

// edge is what the source's edge does with servers that are new, warm up, and are forgiven.
func edge(r *report) error {
	w := watch(health.Config{}, true, "a", "b")
	w.Add("new", false, w.now)
	r.compare()
	admitted := 0
	for range 10 {
		if w.Admit("new") {
			admitted++
		}
	}
	r.exact("requests in flight at a server that never answered, ten wanting to", fmt.Sprint(admitted), "1")
	w.answers("new", 1, time.Millisecond)
	line := plot.Series{Name: "weight"}
	for i, want := range []string{"100", "500", "1000"} {
		if i > 0 {
			w.pass(45 * time.Second)
		}
		weight := w.Weight("new", w.now)
		r.exact(fmt.Sprintf("its weight %d s after its first answer, per mille", 45*i), fmt.Sprint(weight), want)
		line.X, line.Y = append(line.X, float64(45*i)), append(line.Y, float64(weight))
	}
	for range 10 {
		w.answers("a", 1, time.Millisecond)
		w.fails("a")
		w.answers("a", 1, time.Millisecond)
	}
	bad := w.Cost("a")
	w.pass(31 * time.Second)
	r.shape("cost of a server of which a third failed, an error being 1 s", ms(bad), "excluded", bad > 300*time.Millisecond)
	r.exact("the same 30 s later", ms(w.Cost("a")), "0 ms")
	r.lines("A server that warms up", "s", "weight, per mille", line)
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
