package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cacherouter/admin"
)

// of writes how many of how many are shown, and only the latter if that is all.
func of(shown, total int) string {
	if shown == total {
		return number(float64(total))
	}
	return number(float64(shown)) + " of " + number(float64(total))
}

// columns of servers: that of the name and the bar grow with the width, and what is left says
// why.
type columns struct{ name, bar int }

const (
	minName, minBar, maxBar = 13, 10, 24
	otherColumns            = 57 // with the blanks between them
)

func columnsOf(servers []admin.ServerLoad, width int) columns {
	c := columns{minName, minBar}
	spare := max(0, width-minName-minBar-otherColumns)
	for i := range servers {
		c.name = max(c.name, len(plain(servers[i].Name)))
	}
	c.name = min(c.name, minName+spare/2)
	spare -= c.name - minName
	c.bar += min(maxBar-minBar, spare/3)
	return c
}

// servers are those in trouble, then the others by name; where there is no room for all, those
// with the most requests.
func (p *page) servers() part {
	said := &p.view.Event.Servers
	all := slices.Clone(said.Servers)
	slices.SortStableFunc(all, func(a, b admin.ServerLoad) int {
		return cmp.Or(cmp.Compare(rank(b.Trouble), rank(a.Trouble)), cmp.Compare(b.Requests, a.Requests))
	})
	c, most, shown := columnsOf(all, p.width), 0, all // shown is known when the head is drawn
	for i := range all {
		most = max(most, all[i].Load)
	}
	return part{
		rows: len(all),
		head: func(l *line, n int) {
			shown = all[:n]
			slices.SortStableFunc(shown, func(a, b admin.ServerLoad) int {
				return cmp.Or(cmp.Compare(rank(b.Trouble), rank(a.Trouble)), cmp.Compare(a.Name, b.Name))
			})
			l.cell(bold, "SERVERS "+of(n, said.Total), c.name+1+c.bar, false)
			serverCells(l, dim, "load", "state", "requests/s", "p99", "keys", "penalty", "")
		},
		row: func(l *line, i int) { c.server(l, &shown[i], most) },
	}
}

// rank orders levels of trouble.
func rank(level string) int { return slices.Index([]string{"warning", "trouble"}, level) }

// serverCells writes what is known of a server besides its name.
func serverCells(l *line, state style, load, status, requests, p99, keys, penalty, why string) {
	rest := normal
	if state == dim {
		rest = dim
	}
	l.skip(1)
	l.cell(rest, load, 9, true)
	l.skip(1)
	l.cell(state, status, 10, false)
	for _, c := range []struct {
		text  string
		width int
	}{{requests, 10}, {p99, 7}, {keys, 7}, {penalty, 7}} {
		l.skip(1)
		l.cell(rest, c.text, c.width, true)
	}
	l.skip(1)
	l.add(state, why)
}

// server writes a row. A load without a bound is compared with the highest one.
func (c columns) server(l *line, s *admin.ServerLoad, most int) {
	whole, load := s.Bound, fmt.Sprintf("%d/%d", s.Load, s.Bound)
	if s.Bound == 0 {
		whole, load = most, fmt.Sprint(s.Load)
	}
	full := float64(s.Load) / float64(max(whole, 1))
	s1, s2 := normal, green
	switch {
	case s.Bound > 0 && full >= 1:
		s2 = red
	case s.Bound > 0 && full >= 0.8:
		s2 = yellow
	}
	switch s.Trouble {
	case "trouble":
		s1 = red
	case "warning":
		s1 = yellow
	}
	state := s.Status
	if state == "in" {
		state = s.Health
	}
	l.cell(s1, s.Name, c.name, false)
	l.skip(1)
	l.bar(s2, full, c.bar)
	serverCells(l, s1, load, state, rate(s.Requests), took(s.P99), share(s.KeyShare), fmt.Sprint(s.Penalty), s.Why)
}

// hotKeys are by requests.
func (p *page) hotKeys() part {
	h := p.view.Event.HotKeys
	switch {
	case h == nil:
		return none("HOT KEYS", "are not counted")
	case len(h.Keys) == 0:
		return none("HOT KEYS", "none stands out")
	}
	const others = 14 + 10 + 7 + 7 + 6 + 5 // columns, and the blanks between them
	name := 20
	for i := range h.Keys {
		name = max(name, len(plain(h.Keys[i].Key)))
	}
	name = max(16, min(name, p.width-others))
	write := func(l *line, s, hot style, key, server, rate, share, trend, level string) {
		l.cell(hot, key, name, false)
		l.skip(1)
		l.cell(s, server, 14, false)
		l.skip(1)
		l.cell(s, rate, 10, true)
		l.skip(1)
		l.cell(s, share, 7, true)
		l.skip(1)
		l.cell(s, trend, 7, false)
		l.skip(1)
		l.cell(hot, level, 6, false)
	}
	return part{
		rows: len(h.Keys),
		head: func(l *line, n int) {
			write(l, dim, bold, "HOT KEYS "+of(n, len(h.Keys)), "home", "requests/s", "share", "trend", "level")
		},
		row: func(l *line, i int) {
			k, s := &h.Keys[i], normal
			switch k.Level {
			case "hot":
				s = yellow
			case "severe":
				s = red
			}
			write(l, normal, s, k.Key, k.Server, rate(k.Rate), share(k.Share), trend(k.Trend), k.Level)
		},
	}
}

// trend is as the page has it.
func trend(x float64) string {
	switch {
	case x > 0.15:
		return "rising"
	case x < -0.15:
		return "falling"
	}
	return "steady"
}

// routers begin with those that differ or are silent.
func (p *page) routers() part {
	r := p.view.Event.Routers
	if r == nil || len(r.Routers) == 0 {
		return none("ROUTERS", "this one knows no others")
	}
	all := slices.Clone(r.Routers)
	odd := func(r admin.Peer) int {
		if s, _ := peerState(&r); s == normal {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b admin.Peer) int { return cmp.Compare(odd(a), odd(b)) })
	return part{
		rows: len(all),
		head: func(l *line, n int) {
			l.add(bold, "ROUTERS "+of(n, len(all)))
			s, text := agreement(r)
			l.add(s, " "+text)
		},
		row: func(l *line, i int) {
			s, state := peerState(&all[i])
			l.cell(s, all[i].Name, 24, false)
			l.skip(1)
			l.cell(normal, all[i].Kind, 6, false)
			l.skip(1)
			l.cell(normal, all[i].Address, 22, false)
			l.skip(1)
			l.add(s, state)
		},
	}
}

// agreement sums up.
func agreement(r *admin.Routers) (style, string) {
	heard := fmt.Sprintf("%d of %d heard, ", r.Present, r.Known)
	if r.Present == r.Known {
		heard = fmt.Sprintf("%d heard, ", r.Known)
	}
	differ := func(p admin.Peer) bool { return p.Kind != "agent" && p.Present && !p.Agrees }
	switch {
	case r.PlacementsDiffer:
		return red, heard + "and they place keys differently"
	case r.ListsDiffer:
		return red, heard + "and their lists of servers differ"
	case r.Frozen:
		return yellow, heard + "too few to change the placement"
	case r.Abstains:
		return yellow, heard + "and this one does not trust what it sees"
	case slices.ContainsFunc(r.Routers, differ):
		return dim, heard + "which do not agree yet"
	case r.Present < r.Known:
		return yellow, heard + "which agree"
	}
	return dim, heard + "all agree"
}

func peerState(r *admin.Peer) (style, string) {
	switch {
	case r.Kind == "agent":
		return normal, "tells of its server"
	case !r.Present:
		return red, "silent for " + span(time.Duration(r.Silent*float64(time.Second)))
	case !r.Agrees:
		return yellow, "differs"
	case !r.Votes:
		return yellow, "agrees, does not vote"
	}
	return normal, "agrees"
}

// changes are the newest first.
func (p *page) changes() part {
	all := p.view.Changes
	if len(all) == 0 {
		return none("CHANGES", "none yet")
	}
	return part{
		rows: len(all),
		head: func(l *line, n int) {
			l.add(bold, "CHANGES "+of(n, len(all)))
			l.add(dim, " the newest first")
		},
		row: func(l *line, i int) {
			s := normal
			switch all[i].Level {
			case "warn":
				s = yellow
			case "error":
				s = red
			}
			l.cell(dim, when(all[i].At, p.view.Now), 8, false)
			l.skip(1)
			l.add(s, change(&all[i]))
		},
	}
}

// when writes the time of day, or the day if that was another one.
func when(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Jan 2")
	}
	return at.Format(time.TimeOnly)
}

// change writes a change as a log line would, without names where there is no doubt.
func change(c *admin.Change) string {
	var b strings.Builder
	b.WriteString(c.What)
	if c.Server != "" {
		b.WriteString(" " + c.Server)
	}
	if c.From != "" || c.To != "" {
		b.WriteString(": " + strings.TrimPrefix(c.From+" -> ", " -> ") + c.To)
	}
	if c.Reason != "" {
		b.WriteString(", " + c.Reason)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Details)) {
		b.WriteString(" " + name + "=" + c.Details[name])
	}
	return b.String()
}
