package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// Limits of how many servers may be asked for.
const (
	defaultServers = 100
	maxServers     = 10000
)

// api adds the pages of the JSON API that every router has; docs/api.md describes them.
func (s *Server) api(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/overview", s.sampled(func(e *Event) any { return e.Overview }))
	mux.HandleFunc("GET /api/v1/pools", s.poolsPage)
	mux.HandleFunc("GET /api/v1/handover", s.sampled(func(e *Event) any { return e.Handover }))
	mux.HandleFunc("GET /api/v1/servers", s.servers)
	mux.HandleFunc("GET /api/v1/placement", s.placementPage)
	mux.HandleFunc("GET /api/v1/where", s.where)
	mux.HandleFunc("GET /api/v1/changes", s.changes)
	mux.HandleFunc("GET /api/v1/slow", s.slow)
	mux.HandleFunc("GET /api/v1/events", s.events)
}

// sampled answers with a part of what an event has.
func (s *Server) sampled(part func(*Event) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		win, ok := s.window(w, r)
		if !ok {
			return
		}
		e := s.eventOf(win)
		reply(w, part(&e))
	}
}

// window takes a sample, or answers that it could not.
func (s *Server) window(w http.ResponseWriter, r *http.Request) (window, bool) {
	win, err := s.sampler.window(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	return win, err == nil
}

// servers answers GET /api/v1/servers?top=100.
func (s *Server) servers(w http.ResponseWriter, r *http.Request) {
	top, ok := numberOf(w, r, "top", defaultServers, maxServers)
	if !ok {
		return
	}
	if win, ok := s.window(w, r); ok {
		reply(w, newSurvey(win, s.cfg.Membership).top(top))
	}
}

// numberOf reads how many are asked for by a parameter, or answers what is wrong with that.
func numberOf(w http.ResponseWriter, r *http.Request, name string, usual, most int) (n int, ok bool) {
	v := r.FormValue(name)
	if v == "" {
		return usual, true
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		http.Error(w, fmt.Sprintf("%s: want 1 to %d", name, most), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

// placementPage answers GET /api/v1/placement?top=100&server=NAME.
func (s *Server) placementPage(w http.ResponseWriter, r *http.Request) {
	top, ok := numberOf(w, r, "top", defaultServers, maxServers)
	if !ok {
		return
	}
	p := s.pictures.now()
	if p == nil {
		http.Error(w, "this placement cannot be shown", http.StatusNotFound)
		return
	}
	reply(w, p.top(top, r.FormValue("server")))
}

// changes answers GET /api/v1/changes.
func (s *Server) changes(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.History == nil {
		http.Error(w, "changes are not remembered", http.StatusNotFound)
		return
	}
	reply(w, s.cfg.History.Changes())
}

// news returns what is closed when something changes.
func (s *Server) news() <-chan struct{} {
	if s.cfg.History == nil {
		return nil
	}
	_, news := s.cfg.History.since()
	return news
}

// primed takes a first sample beside an answer, so that whoever follows up with a question
// about rates need not wait for one.
func (s *Server) primed() {
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	s.sampler.prime(ctx)
}
