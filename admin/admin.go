// Package admin is the router's HTTP side: health, readiness, metrics. It is the only
// importer of net/http and of a metrics library. It asks the router for snapshots and
// never touches the path of a request.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"cacherouter/hotkey"
	"cacherouter/router"
)

// Router is what the admin server asks.
type Router interface {
	// Snapshots returns the state of every loop.
	Snapshots(ctx context.Context) ([]router.Snapshot, error)
	// Table returns the table in force.
	Table() *router.Table
}

// Config says what is served.
type Config struct {
	Router Router
	// Membership is asked about servers and routers that come and go; nil where they do not.
	Membership Membership
	// HotKeys reports the k keys that stand out most, nil if keys are not counted.
	HotKeys func(k int) *hotkey.Report
	// Reload reloads the configuration; its error says what is wrong with it.
	Reload func() error
	// Log gets failures of the server itself; nil means slog.Default.
	Log *slog.Logger
}

// Server is the admin HTTP server.
type Server struct {
	http  http.Server
	cfg   Config
	ready atomic.Bool
}

// New returns a server that [Server.Serve] sets going.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{cfg: c}
	s.http = http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// handler lays out the pages.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	s.membersPages(mux)
	if s.cfg.HotKeys != nil {
		mux.HandleFunc("GET /api/v1/hotkeys", s.hotKeys)
	}
	mux.Handle("GET /metrics", newScraper(s.figures))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("POST /api/v1/reload", onlyLoopback(s.reload))
	mux.Handle("/debug/pprof/", onlyLoopback(pprof.Index))
	mux.Handle("/debug/pprof/profile", onlyLoopback(pprof.Profile))
	mux.Handle("/debug/pprof/symbol", onlyLoopback(pprof.Symbol))
	mux.Handle("/debug/pprof/cmdline", onlyLoopback(pprof.Cmdline))
	mux.Handle("/debug/pprof/trace", onlyLoopback(pprof.Trace))
	return mux
}

// figures returns the present figures of all there is.
func (s *Server) figures() *figures {
	f := newFigures()
	addRouter(f, s.cfg.Router)
	if s.cfg.Membership != nil {
		addMembership(f, s.cfg.Membership)
	}
	if s.cfg.HotKeys != nil {
		if r := s.cfg.HotKeys(1); r != nil {
			hotKeyMetrics.add(f, r)
		}
	}
	return f
}

// Serve answers on ln until Close; it returns nil then.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve admin: %w", err)
	}
	return nil
}

// Close ends Serve and every request.
func (s *Server) Close() error { return s.http.Close() }

// SetReady says whether the router takes traffic. Any goroutine may call it.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// readyz tells load balancers whether to send clients here.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "not ready: starting or draining", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	snaps, err := s.cfg.Router.Snapshots(ctx)
	if err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	for _, snap := range snaps {
		if snap.ServersUp == 0 {
			http.Error(w, "not ready: no server can be reached", http.StatusServiceUnavailable)
			return
		}
	}
	if m := s.cfg.Membership; m != nil && !anyUsable(m.View()) {
		http.Error(w, "not ready: no server is usable", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (s *Server) reload(w http.ResponseWriter, _ *http.Request) {
	if err := s.cfg.Reload(); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	fmt.Fprintln(w, "reloaded")
}

// onlyLoopback serves clients on the same host only.
func onlyLoopback(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
		if err != nil || !addr.IP.IsLoopback() {
			http.Error(w, "only from the same host", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}
