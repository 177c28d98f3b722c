package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cacherouter/membership"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Problem is one thing that is not as it should be.
type Problem struct {
	// Level is warning or trouble.
	Level string `json:"level"`
	// Text is a sentence.
	Text string `json:"text"`
}

// From these shares of requests that fail it is a warning, and a trouble.
const (
	failingSome = 0.001
	failingMany = 0.01
)

// problems finds all that is not well, the worst first.
func (s *Server) problems(f *survey, o *Overview, r *Routers) []Problem {
	all := []Problem{}
	add := func(on bool, level, text string) {
		if on {
			all = append(all, Problem{level, text})
		}
	}
	add(!s.ready.Load(), levelWarning, "This router is starting or draining: load balancers are told to send no clients.")
	add(f.w.to.up == 0 || f.m != nil && !anyUsable(f.state), levelTrouble, "No server can be used: requests fail.")
	failing, refused := 0.0, 0.0
	if o.Requests > 0 {
		failing, refused = o.Failed/o.Requests, o.Refused/o.Requests
	}
	add(failing >= failingMany, levelTrouble, fmt.Sprintf("%.1f %% of the requests fail.", 100*failing))
	add(failing >= failingSome && failing < failingMany, levelWarning, fmt.Sprintf("%.2f %% of the requests fail.", 100*failing))
	add(refused >= failingSome, levelWarning, fmt.Sprintf("%.1f %% of the requests are refused, by quotas, limits or for load.", 100*refused))
	add(f.stats.Panic, levelTrouble, "Most servers look down from here, so their health is ignored.")
	all = append(all, f.problems()...)
	if s.cfg.Reloads != nil {
		all = append(all, problemOf(s.cfg.Reloads())...)
	}
	if r != nil {
		all = append(all, problemsOf(r)...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(severity(b.Level), severity(a.Level)) })
	return all
}

// troubleOf says what a server's state means for its keys, as phrase takes it.
func troubleOf(s *membership.Server) (level, about string) {
	switch s.Status {
	case view.Away:
		return levelWarning, "[is|are] away: the routers agree that [it|they] cannot be reached, and [its|their] keys are at the next servers until [it is|they are] back"
	case view.Out:
		return levelWarning, "[is|are] out: [its|their] keys have been placed on the others"
	case view.Draining:
		return "", "[drains|drain]: [its|their] keys have been placed on the others"
	}
	switch {
	case s.Writes == membership.Refuse:
		return levelTrouble, "cannot be reached: [its|their] reads go to the next servers, and [its|their] writes are refused until the routers agree"
	case s.Writes == membership.Failover && s.Clean:
		return levelWarning, "[answers|answer] again, and [is|are] being cleaned of what [it|they] missed"
	case s.Writes == membership.Failover:
		return levelWarning, "cannot be reached: [its|their] keys are at the next servers"
	case s.Health == health.Down:
		return levelWarning, "[fails|fail], and [is|are] used nevertheless, as most servers do"
	case !s.Reads:
		return levelWarning, "[fails|fail] too often to be read from"
	case s.Health == health.Suspect:
		return levelWarning, "[has|have] failed lately, or [is|are] much slower than the others"
	case s.Health == health.Probation:
		return "", "[is|are] tried with one request at a time"
	case s.Health == health.SlowStart:
		return "", "[returns|return] slowly to full load"
	}
	return "", ""
}

// unreachedNow is said of servers that the loops cannot connect to, before membership has made
// up its mind what that means.
const unreachedNow = "cannot be reached at this moment: what becomes of [its|their] keys is decided within seconds"

// phrase makes a text speak of n servers: of each [one|many] it takes what fits.
func phrase(text string, n int) string {
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(text, "[")
		b.WriteString(before)
		if !more {
			return b.String()
		}
		choice, after, _ := strings.Cut(rest, "]")
		one, many, _ := strings.Cut(choice, "|")
		if n == 1 {
			many = one
		}
		b.WriteString(many)
		text = after
	}
}

// problems says in a sentence each what is the matter with servers.
func (f *survey) problems() (all []Problem) {
	names := make(map[Problem][]string)
	var order []Problem // by the first server each was seen at
	for i := range f.all {
		l := &f.all[i]
		if l.Trouble == "" {
			continue
		}
		p := Problem{l.Trouble, l.about}
		if names[p] == nil {
			order = append(order, p)
		}
		names[p] = append(names[p], l.Name)
	}
	for _, p := range order {
		what, n := names[p][0], len(names[p])
		if n > 1 {
			what = fmt.Sprintf("%d servers (%s)", n, list(names[p]))
		}
		all = append(all, Problem{p.Level, what + " " + phrase(p.Text, n) + "."})
	}
	return all
}

// list names the first few.
func list(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// problemsOf says in a sentence each what is wrong between the routers.
func problemsOf(r *Routers) (all []Problem) {
	for _, p := range []struct {
		on    bool
		level string
		text  string
	}{
		{r.PlacementsDiffer, levelTrouble, "Routers place keys differently although they have one list of servers: the same key is looked for in different places."},
		{r.ListsDiffer, levelTrouble, "Routers have different lists of servers or settings of placement: compare their configurations."},
		{r.Frozen, levelWarning, "Too few routers can be heard: this one changes no placement."},
		{r.Abstains, levelWarning, "This router does not trust what it sees of the servers, and leaves it to the others to judge them."},
	} {
		if p.on {
			all = append(all, Problem{p.level, p.text})
		}
	}
	return all
}

// verdict sums up: the worst problem, or what is well.
func verdict(f *survey, problems []Problem, r *Routers) (level, sentence string) {
	if len(problems) > 0 {
		return problems[0].Level, problems[0].Text
	}
	serving, draining := 0, 0
	for i := range f.all {
		switch f.all[i].Status {
		case view.Draining.String():
			draining++
		default:
			serving++
		}
	}
	sentence = "All is well: " + count(serving, "server serves", "servers serve")
	if draining > 0 {
		sentence += ", " + count(draining, "drains", "drain")
	}
	if r != nil && r.Known > 1 {
		sentence += ", " + count(r.Present, "router agrees", "routers agree")
	}
	return levelWell, sentence + "."
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
