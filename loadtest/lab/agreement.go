package lab

import (
	"fmt"
	"time"

	"cacherouter/loadtest/lab/agreement"
	"cacherouter/loadtest/lab/plot"
	"cacherouter/membership/damping"
	"cacherouter/membership/view"
)

// movedAway is what became of a server that is gone.
type movedAway struct {
	first, last time.Duration // when the first router, and the last one, placed its keys elsewhere
	messages    float64       // a second and router, between routers
	agreed      bool
}

// moveAway kills or stops a server and waits until it is out.
func moveAway(c agreement.Config, s agreement.State) movedAway {
	w := agreement.New(c)
	w.Set(0, s)
	w.Run(8 * time.Second)
	m := movedAway{agreed: w.Agreed() && w.Out(0), messages: float64(w.Messages) / w.Since().Seconds() / float64(c.Routers)}
	if len(w.Changes) > 0 {
		m.first, m.last = w.Changes[0].At, w.Changes[len(w.Changes)-1].At
	}
	m.agreed = m.agreed && len(w.Changes) == c.Routers
	return m
}

func propagation(r *report) error {
	type fleetOf struct{ routers, servers int }
	fleets := []fleetOf{{3, 10}, {10, 100}, {30, 300}, {100, 1000}}
	all := make([]movedAway, 2*len(fleets)-1) // the largest only once
	each(len(all), func(i int) {
		i = len(all) - 1 - i // the largest first
		f, c := fleets[i/2], agreement.Config{Seed: 1}
		c.Routers, c.Servers = f.routers, f.servers
		if i%2 == 1 {
			c.Loss = 0.2
		}
		all[i] = moveAway(c, agreement.Refuses)
	})
	r.begin("a server is killed", "first router", "last after it", "messages/s", "")
	together, soon := true, true
	spread := []plot.Series{{Name: "no loss"}, {Name: "a fifth lost"}}
	for i, m := range all {
		f := fleets[i/2]
		what := fmt.Sprintf("%d routers, %d servers", f.routers, f.servers)
		limit := 100 * time.Millisecond
		if i%2 == 1 {
			what, limit = what+", a fifth of all messages lost", time.Second
		}
		r.row(what, seconds(m.first), fmt.Sprintf("%d ms", (m.last-m.first).Milliseconds()), fmt.Sprintf("%.0f", m.messages), "")
		together = together && m.agreed && m.last-m.first <= limit
		soon = soon && m.last <= 7*time.Second
		spread[i%2].X, spread[i%2].Y = append(spread[i%2].X, float64(f.routers)), append(spread[i%2].Y, (m.last-m.first).Seconds()*1000)
	}
	r.claim("all routers switch within 100 ms of each other, within 1 s if a fifth of their messages is lost, and once", together)
	r.claim("keys of the killed server are elsewhere after 7 s at the latest", soon)
	r.note("Messages are those that each router sends; the source asks for one view, and an alarm while there are several.")
	r.lines("From the first router to the last", "routers", "ms", spread...)
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// flaps has a server come and go for ten minutes and counts the changes of placement.
func flaps(c view.Config, s agreement.State, up, down time.Duration) (all, late int) {
	const total = 10 * time.Minute
	w := agreement.New(agreement.Config{Routers: 3, Servers: 10, Seed: 7, View: c})
	for range total / (up + down) {
		w.Run(up)
		w.Set(5, s)
		w.Run(down)
		w.Set(5, agreement.Answers)
	}
	for _, change := range w.Changes {
		if change.Router == 0 {
			all++
			if change.At > total/2 {
				late++
			}
		}
	}
	return all, late
}

func flapping(r *report) error {
	periods := []struct {
		up, down time.Duration
		state    agreement.State // while it is down
		undamped int             // exactly; 0 where it depends on jitter
	}{
		{10 * time.Second, 10 * time.Second, agreement.Silent, 59}, {20 * time.Second, 20 * time.Second, agreement.Silent, 29},
		{30 * time.Second, 6 * time.Second, agreement.Silent, 0}, {2 * time.Second, 2 * time.Second, agreement.Refuses, 0},
	}
	counts := make([][3]int, len(periods))
	each(2*len(periods), func(i int) {
		p := periods[i/2]
		if i%2 == 0 {
			counts[i/2][0], _ = flaps(view.Config{Damping: damping.Config{Off: true}}, p.state, p.up, p.down)
		} else {
			counts[i/2][1], counts[i/2][2] = flaps(view.Config{}, p.state, p.up, p.down)
		}
	})
	r.begin("changes of placement in ten minutes", "undamped", "damped", "late", "")
	undamped, damped := plot.Series{Name: "undamped"}, plot.Series{Name: "damped"}
	var groups []string
	held, known := true, true
	for i, p := range periods {
		n := counts[i]
		r.row(fmt.Sprintf("up %v, down %v", p.up, p.down), fmt.Sprint(n[0]), fmt.Sprint(n[1]), fmt.Sprint(n[2]), "")
		known = known && (p.undamped == 0 || n[0] == p.undamped)
		held = held && n[1] <= 12 && n[2] <= 4
		undamped.Y, damped.Y = append(undamped.Y, float64(n[0])), append(damped.Y, float64(n[1]))
		groups = append(groups, fmt.Sprintf("%v/%v", p.up, p.down))
	}
	r.claim("undamped it is at each flap twice, but for the last: 59 and 29", known)
	r.claim("damped at most 12, of them 4 in the last five minutes", held)
	r.note("The source: a node that flaps repeats the remap storm at each flip.")
	r.bars("Changes of placement by a server that flaps", "in ten minutes", false, groups, undamped, damped)
	return nil
}
