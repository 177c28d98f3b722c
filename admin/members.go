package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/gossip"
	"cacherouter/membership/health"
	"cacherouter/membership/view"
)

// Membership is what the admin server asks about servers and routers that come and go.
// [membership.Cluster] is one.
type Membership interface {
	View() *membership.State
	Stats() membership.Stats
	Explain(server string) (view.Explanation, bool)
	Routers() []gossip.Member
	Neighbours() []view.Neighbour
	Drain(server string) bool
	Undrain(server string) bool
}

// Members is what /api/v1/members says: the servers as this router and the others see them.
type Members struct {
	// Version and Digest are those of the view: the same at all routers that agree.
	Version uint64 `json:"version"`
	Digest  string `json:"digest"`
	// Since is when the present placement began.
	Since time.Time `json:"since"`
	// Agreed says that all routers can be heard and have this placement.
	Agreed bool `json:"agreed"`
	// Handover is until when servers are asked for what they held before the last change;
	// not there when they are not.
	Handover *time.Time `json:"handover_until,omitempty"`
	// Next names the servers of the placement that will replace this one within seconds.
	Next    []string `json:"next,omitempty"`
	Servers []Member `json:"servers"`
}

// Member is one server.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Weight  int    `json:"weight"`
	// Status is what the routers have agreed on: in, away, out, draining.
	Status string `json:"status"`
	// Health is what this router makes of it: up, suspect, down, probation, slow start.
	Health string `json:"health"`
	Reads  bool   `json:"reads"`
	// Writes says where those go: home, refuse, failover.
	Writes string `json:"writes"`
	// Share is how much of its full load it may get where there is a choice, per mille.
	Share int `json:"share"`
	// Missed is how many keys it missed writes of, at this router.
	Missed int `json:"missed_keys"`
	// MayStop says that no router sends it anything more, so that it can be stopped.
	MayStop bool `json:"may_stop"`
	Why     Why  `json:"why"`
}

// Why is why a server has the status it has.
type Why struct {
	// Opinions are what the routers say of it, by router; only those of Voters count, and
	// it takes Quorum of them.
	Opinions map[string]string `json:"opinions"`
	Voters   []string          `json:"voters"`
	Quorum   int               `json:"quorum"`
	// Next is what it will be, and At when, if that is decided.
	Next string     `json:"next,omitempty"`
	At   *time.Time `json:"at,omitempty"`
	// Penalty is for coming and going, and HeldUntil the time before which it does not
	// get its keys back.
	Penalty   int        `json:"penalty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
}

// membersOf puts together what is known about the servers.
func membersOf(m Membership) Members {
	s, stats := m.View(), m.Stats()
	out := Members{
		Version: s.Version, Digest: fmt.Sprintf("%016x", s.Digest), Since: s.Since.UTC(), Agreed: stats.View.Agreed,
		Servers: make([]Member, 0, len(s.Servers)),
	}
	handedOver := make(map[string]bool)
	for _, b := range s.Before {
		out.Handover = timeOrNil(s.Until)
		handedOver[b.Name] = true
	}
	for _, a := range s.After {
		out.Next = append(out.Next, a.Name)
	}
	for _, server := range s.Servers {
		member := memberOf(server, m, stats.Journals[server.Name])
		settled := stats.View.Agreed && len(s.After) == 0
		member.MayStop = !server.Status.Placed() && settled && !handedOver[server.Name]
		out.Servers = append(out.Servers, member)
	}
	return out
}

func memberOf(s membership.Server, m Membership, missed int) Member {
	e, _ := m.Explain(s.Name)
	why := Why{Opinions: make(map[string]string), Voters: e.Voters, Quorum: e.Quorum, Penalty: e.Penalty, HeldUntil: timeOrNil(e.Until), At: timeOrNil(e.At)}
	for router, o := range e.Opinions {
		why.Opinions[router] = o.String()
	}
	if !e.At.IsZero() {
		why.Next = e.Next.String()
	}
	return Member{
		Name: s.Name, Address: s.Address, Weight: s.Weight, Status: s.Status.String(), Health: s.Health.String(),
		Reads: s.Reads, Writes: s.Writes.String(), Share: s.Share, Missed: missed, Why: why,
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Round(time.Millisecond)
	return &t
}

// membersPages adds the pages about servers and routers.
func (s *Server) membersPages(mux *http.ServeMux) {
	m := s.cfg.Membership
	if m == nil {
		return
	}
	mux.HandleFunc("GET /api/v1/members", func(w http.ResponseWriter, _ *http.Request) { reply(w, membersOf(m)) })
	mux.HandleFunc("GET /api/v1/routers", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.routersOf()) })
	mux.Handle("POST /api/v1/drain", s.action(s.change("drain", m.Drain, "is the last one that holds keys")))
	mux.Handle("POST /api/v1/undrain", s.action(s.change("undrain", m.Undrain, "does not drain")))
}

// change serves a request to change one server; refused says why that may not be.
func (s *Server) change(what string, do func(server string) bool, refused string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("server")
		before, listed := s.cfg.Membership.View().Find(name)
		switch {
		case !listed:
			http.Error(w, fmt.Sprintf("no server is named %q", name), http.StatusNotFound)
		case !do(name):
			http.Error(w, fmt.Sprintf("server %s %s", name, refused), http.StatusConflict)
		default:
			s.cfg.Log.Info(what, "server", name, "status", before.Status.String())
			reply(w, membersOf(s.cfg.Membership))
		}
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // the client has gone if that fails
}

// anyUsable reports whether reads can be sent to any server that holds keys.
func anyUsable(s *membership.State) bool {
	for _, server := range s.Placed() {
		if server.Reads && server.Health != health.Down {
			return true
		}
	}
	return false
}
