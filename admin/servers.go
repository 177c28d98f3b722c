package admin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"cacherouter/backend"
	"cacherouter/membership"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
	"cacherouter/router"
)

// Servers is what /api/v1/servers says: those with the highest load, and those that are in
// trouble. Rates are a second, over the time that the overview gives.
type Servers struct {
	// Total is how many servers are listed, Shown how many of them are here, Troubled how
	// many are in trouble, of which TroubledShown are here.
	Total         int          `json:"total"`
	Shown         int          `json:"shown"`
	Troubled      int          `json:"troubled"`
	TroubledShown int          `json:"troubled_shown"`
	Servers       []ServerLoad `json:"servers"` // by name
}

// ServerLoad is one server and what it has to do.
type ServerLoad struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Weight  int    `json:"weight"` // 0 if servers are not watched
	// Status is what the routers have agreed on: in, away, out, draining.
	Status string `json:"status"`
	// Health is what this router makes of it: up, suspect, down, probation, slow start.
	Health string `json:"health"`
	// Trouble is empty, warning or trouble, and Why what is going on, if anything is.
	Trouble string `json:"trouble"`
	Why     string `json:"why"`
	// KeyShare is the share of all keys that it is home to, 0 to 1.
	KeyShare float64 `json:"key_share"`
	// Requests is how many it gets, Failures how many of them it does not answer.
	Requests float64 `json:"requests_per_second"`
	Failures float64 `json:"failures_per_second"`
	// P50 and P99 are the times that half, and all but one in a hundred, of its answers took at
	// most; null if there were none.
	P50 *float64 `json:"p50_seconds"`
	P99 *float64 `json:"p99_seconds"`
	// Sent and Received are bytes of requests and of replies.
	Sent     float64 `json:"sent_bytes_per_second"`
	Received float64 `json:"received_bytes_per_second"`
	// Load is the units in flight, and Bound the load from which reads of hot keys go to
	// other servers; 0 if there is no bound.
	Load  int `json:"load"`
	Bound int `json:"bound"`
	// Ramp is how much of its full load it may get where there is a choice, 0 to 1: it grows
	// while the server is new.
	Ramp float64 `json:"ramp"`
	// Penalty is for coming and going, and HeldUntil the time before which it does not get
	// its keys back.
	Penalty   int        `json:"penalty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// Missed is how many keys it missed writes of, at this router.
	Missed int `json:"missed_keys"`
	// MayStop says that no router sends it anything more, so that it can be stopped.
	MayStop bool `json:"may_stop"`

	about string // Why, as phrase takes it
}

// The levels of trouble.
const (
	levelWell    = "well"
	levelWarning = "warning"
	levelTrouble = "trouble"
)

// survey is all servers as they are put together for one answer.
type survey struct {
	w      window
	m      Membership        // nil if servers are not watched
	state  *membership.State // nil then
	stats  membership.Stats
	at     map[string]int  // index in the table, by name
	shares []float64       // of the keys, by that index; may be shorter
	former map[string]bool // servers that are asked for what they held
	all    []ServerLoad
}

// newSurvey puts the servers together, without what is asked of membership one by one.
func newSurvey(w window, m Membership) *survey {
	f := &survey{w: w, m: m, at: make(map[string]int, len(w.to.table.Servers)), former: make(map[string]bool)}
	for i := range w.to.table.Servers {
		f.at[w.to.table.Servers[i].Name] = i
	}
	if shares := w.to.table.Shares; shares != nil {
		f.shares = shares()
	}
	if m == nil {
		f.all = make([]ServerLoad, 0, len(w.to.table.Servers))
		for i := range w.to.table.Servers {
			f.all = append(f.all, f.unwatched(&w.to.table.Servers[i]))
		}
	} else {
		f.state, f.stats = m.View(), m.Stats()
		f.all = make([]ServerLoad, 0, len(f.state.Servers))
		for _, b := range f.state.Before {
			f.former[b.Name] = true
		}
		for i := range f.state.Servers {
			f.all = append(f.all, f.watched(&f.state.Servers[i]))
		}
	}
	slices.SortFunc(f.all, func(a, b ServerLoad) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

// unwatched describes a server of which only its connections are known.
func (f *survey) unwatched(s *router.Server) ServerLoad {
	l := ServerLoad{Name: s.Name, Address: s.Address, Status: view.In.String(), Health: health.Up.String(), Ramp: 1}
	f.measure(&l)
	if f.unreached(s.Address) {
		l.Health, l.Trouble, l.Why = health.Down.String(), levelTrouble, "cannot be reached"
		l.about = l.Why
	}
	return l
}

// unreached reports whether no loop can connect to a server.
func (f *survey) unreached(addr string) bool {
	_, now := f.w.server(addr)
	return now.Up == 0 && now.Connects > 0
}

// watched describes a server that membership watches.
func (f *survey) watched(s *membership.Server) ServerLoad {
	l := ServerLoad{
		Name: s.Name, Address: s.Address, Weight: s.Weight, Status: s.Status.String(), Health: s.Health.String(),
		Ramp: float64(s.Share) / 1000, Missed: f.stats.Journals[s.Name],
		MayStop: !s.Status.Placed() && f.stats.View.Agreed && len(f.state.After) == 0 && !f.former[s.Name],
	}
	f.measure(&l)
	l.Trouble, l.about = troubleOf(s)
	if s.Writes == membership.Home && f.unreached(s.Address) {
		l.Trouble, l.about = levelWarning, unreachedNow
	}
	l.Why = phrase(l.about, 1)
	return l
}

// measure adds what the loops have had to do with a server.
func (f *survey) measure(l *ServerLoad) {
	from, to := f.w.server(l.Address)
	l.Requests = f.w.perSecond(from.Calls, to.Calls)
	l.Failures = f.w.perSecond(failuresOf(&from), failuresOf(&to))
	l.Sent = f.w.perSecond(from.BytesOut, to.BytesOut)
	l.Received = f.w.perSecond(from.BytesIn, to.BytesIn)
	l.P50, l.P99 = quantiles(&from.Latency, &to.Latency)
	l.Load = to.InFlight
	i, ok := f.at[l.Name]
	if ok && i < len(f.shares) {
		l.KeyShare = f.shares[i]
	}
	if ok && f.w.to.table.Bound != nil {
		l.Load, l.Bound = f.w.to.table.Bound.InFlight(i), f.w.to.table.Bound.Cap(i)
	}
}

func failuresOf(s *backend.Stats) (n uint64) {
	for _, v := range s.Failures {
		n += v
	}
	return n
}

// severity orders levels.
func severity(level string) int {
	return map[string]int{levelWarning: 1, levelTrouble: 2}[level]
}

// top returns the n servers with the highest load and as many of those that are in trouble,
// and asks membership about them alone: with thousands of servers that takes a while.
func (f *survey) top(n int) Servers {
	out := Servers{Total: len(f.all), Servers: []ServerLoad{}}
	byTrouble, byLoad := make([]int, len(f.all)), make([]int, len(f.all))
	for i := range f.all {
		byTrouble[i], byLoad[i] = i, i
		if f.all[i].Trouble != "" {
			out.Troubled++
		}
	}
	slices.SortStableFunc(byTrouble, func(a, b int) int {
		return severity(f.all[b].Trouble) - severity(f.all[a].Trouble)
	})
	slices.SortStableFunc(byLoad, func(a, b int) int {
		x, y := &f.all[a], &f.all[b]
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), cmp.Compare(y.KeyShare, x.KeyShare))
	})
	chosen := append(slices.Clone(byTrouble[:min(n, out.Troubled)]), byLoad[:min(n, len(byLoad))]...)
	slices.Sort(chosen)
	for _, i := range slices.Compact(chosen) {
		out.Servers = append(out.Servers, f.explained(f.all[i]))
		if f.all[i].Trouble != "" {
			out.TroubledShown++
		}
	}
	out.Shown = len(out.Servers)
	return out
}

// explained adds what only membership's decisions tell.
func (f *survey) explained(l ServerLoad) ServerLoad {
	if f.m == nil {
		return l
	}
	e, ok := f.m.Explain(l.Name)
	if !ok {
		return l
	}
	l.Penalty, l.HeldUntil = e.Penalty, timeOrNil(e.Until)
	if !e.At.IsZero() {
		l.Why = join(l.Why, fmt.Sprintf("will be %s in a moment", e.Next))
	}
	if e.Status == view.Out && e.Until.After(time.Now()) {
		l.Why = join(l.Why, "is held back, as it came and went")
	}
	return l
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
