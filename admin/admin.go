// Package admin is the router's HTTP side: health, readiness, metrics, the JSON API and the
// page that shows it. It is the only
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

	"cacherouter/accesslog"
	"cacherouter/hotkey"
	"cacherouter/reload"
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
	// Name is the router's among the others.
	Name   string
	Router Router
	// Pool is the name of the pool, if it has one.
	Pool string
	// Pools are those of a router that has several: each is shown to who asks for it with
	// ?pool=NAME. Who does not is shown the figures of all together, and of servers, keys and
	// placement those of one, for which Pool, Membership, HotKeys and Placing stand.
	Pools []Pool
	// Target tells where a key goes; nil means that nobody knows.
	Target func(key string) router.Target
	// Loops is how many event loops it has; 0 if that is not to be shown.
	Loops int
	// Engine is how they serve sockets; empty if that is not to be shown.
	Engine string
	// Membership is asked about servers and routers that come and go; nil where they do not.
	Membership Membership
	// HotKeys reports the k keys that stand out most, nil if keys are not counted.
	HotKeys func(k int) *hotkey.Report
	// Placing tells how keys are placed, nil if that cannot be shown.
	Placing func() *Placing
	// History has what has changed lately, nil if that is not remembered.
	History *History
	// Slow remembers slow requests, and SlowOver is from when on one is; nil and 0 if none is.
	Slow     *accesslog.Slow
	SlowOver time.Duration
	// Records tells what has become of the records of requests.
	Records func() RecordCounts
	// Quotas tells what has become of the quotas of routes and networks; nil if there are none.
	Quotas func() []router.QuotaUse
	// Reload reloads the configuration, and Reloads tells what has become of that so far; nil
	// if it cannot be.
	Reload  func(reload.Options) *reload.Report
	Reloads func() reload.State
	// Local says that only this host reaches the listener. Then requests for other names than
	// localhost, loopback addresses and Hosts are refused, and this host may change things.
	// Unix says that the listener is a unix socket, which no browser reaches.
	Local, Unix bool
	Hosts       []string
	// Token returns what those must have who change things, wherever they are; nil if there
	// is none.
	Token func() string
	// Log gets failures of the server itself; nil means slog.Default.
	Log *slog.Logger
}

// Server is the admin HTTP server.
type Server struct {
	http      http.Server
	cfg       Config
	started   time.Time
	ready     *atomic.Bool
	next      atomic.Pointer[Server] // shows the pools since they have changed; nil if they have not
	sampler   sampler
	pictures  pictures
	broadcast broadcast
	pools     map[string]*Server // that show one each
}

// New returns a server that [Server.Serve] sets going.
func New(c Config) *Server {
	s := newServer(c)
	s.addPools()
	return s
}

// newServer returns one that shows one pool.
func newServer(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{cfg: c, started: time.Now(), ready: new(atomic.Bool)}
	s.sampler.router, s.pictures.placing = c.Router, c.Placing
	s.broadcast.make, s.broadcast.news = s.event, s.news
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
	s.page(mux)
	s.api(mux)
	s.membersPages(mux)
	if s.cfg.HotKeys != nil {
		mux.HandleFunc("GET /api/v1/hotkeys", s.hotKeys)
	}
	mux.Handle("GET /metrics", newScraper(s.figures))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	s.reloadPages(mux)
	mux.Handle("/debug/pprof/", onlyLoopback(pprof.Index))
	mux.Handle("/debug/pprof/profile", onlyLoopback(pprof.Profile))
	mux.Handle("/debug/pprof/symbol", onlyLoopback(pprof.Symbol))
	mux.Handle("/debug/pprof/cmdline", onlyLoopback(pprof.Cmdline))
	mux.Handle("/debug/pprof/trace", onlyLoopback(pprof.Trace))
	return s.showing(s.onlyKnownHosts(s.byPool(mux)))
}

// figures returns the present figures of all there is.
func (s *Server) figures() *figures {
	f := newFigures()
	if s.cfg.Reloads != nil {
		addReloads(f, s.cfg.Reloads())
	}
	if s.cfg.Engine != "" {
		f.add(engineFamily, 1, s.cfg.Engine)
	}
	if s.cfg.Records != nil {
		c := s.cfg.Records()
		recordMetrics.add(f, &c)
	}
	pools := s.cfg.Pools
	if len(pools) == 0 {
		pools = []Pool{{Router: s.cfg.Router, Membership: s.cfg.Membership, HotKeys: s.cfg.HotKeys}}
	}
	addRouter(f, s.cfg.Router, pools)
	if s.cfg.Quotas != nil {
		addQuotas(f, s.cfg.Quotas())
	}
	for i, p := range pools {
		f.pool = p.Name
		if p.Membership != nil {
			addMembership(f, p.Membership, i == 0)
		}
		if p.HotKeys != nil {
			if r := p.HotKeys(1); r != nil {
				hotKeyMetrics.add(f, r)
			}
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
func (s *Server) Close() error {
	s.endStreams()
	if next := s.next.Load(); next != nil {
		next.endStreams()
	}
	return s.http.Close()
}

// endStreams ends the streams of events.
func (s *Server) endStreams() {
	s.broadcast.close()
	for _, p := range s.pools {
		p.broadcast.close()
	}
}

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
	if !s.anyPoolUsable() {
		http.Error(w, "not ready: no server is usable", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}
