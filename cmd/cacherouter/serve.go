package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cacherouter/admin"
	"cacherouter/handoff"
	"cacherouter/reactor"
	"cacherouter/reload"
	"cacherouter/router"

	"golang.org/x/sync/errgroup"
)

type serveCmd struct {
	poolFlags
	Listen   []listenerConfig `help:"Addresses for clients: host:port, or unix: and a path." placeholder:"ADDR"`
	Admin    *string          `help:"Address of the admin HTTP server; empty for none." placeholder:"ADDR"`
	Loops    int              `help:"Event loops; 0 means one per processor." default:"0"`
	Engine   string           `help:"How sockets are served: auto, uring, epoll or portable." placeholder:"NAME"`
	Name     string           `help:"This router's name among the others." placeholder:"NAME"`
	Gossip   string           `help:"Address on which routers talk to each other, usually port 11313." placeholder:"ADDR"`
	Join     []string         `help:"Addresses of other routers." placeholder:"ADDR,..."`
	Keyring  string           `help:"File of keys for the gossip." type:"path" placeholder:"FILE"`
	Watch    *bool            `name:"membership" help:"Watch the servers (the default), or leave keys where they are placed." negatable:""`
	FlushAll *bool            `help:"Let clients flush all servers." negatable:""`
}

// load returns the configuration that the command line asks for. It is called again at
// each reload.
func (c *serveCmd) load() (config, error) {
	cfg, err := c.poolFlags.load()
	if err != nil {
		return cfg, err
	}
	if len(c.Listen) > 0 {
		cfg.Listen = c.Listen
	}
	if c.Admin != nil {
		cfg.Admin = *c.Admin
	}
	if c.Loops > 0 {
		cfg.Loops = c.Loops
	}
	if c.Engine != "" {
		cfg.Engine = reactor.Engine(c.Engine)
	}
	if c.FlushAll != nil {
		for _, p := range cfg.each() {
			p.FlushAll = *c.FlushAll
		}
	}
	cfg.Name = cmp.Or(c.Name, cfg.Name)
	cfg.Gossip.Bind = cmp.Or(c.Gossip, cfg.Gossip.Bind)
	cfg.Gossip.Keyring = cmp.Or(c.Keyring, cfg.Gossip.Keyring)
	if len(c.Join) > 0 {
		cfg.Gossip.Join = c.Join
	}
	if c.Watch != nil {
		cfg.Membership.Enabled = *c.Watch
	}
	return cfg, cfg.validate()
}

// Run serves until a signal says to stop.
func (c *serveCmd) Run(s streams) error {
	var watch *reload.Watch
	if c.Config != "" {
		watch = reload.NewWatch(c.Config) // before it is read, so that nothing is missed
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.err, nil))
	serving := newServer(cfg, c.load, log, nil, programPath())
	serving.watch = watch
	return serving.serve()
}

// server is a router with the world around it.
type server struct {
	cfg     config // as it was at the start; what a reload takes over is in inForce
	load    func() (config, error)
	log     *slog.Logger // for changes of state, which it remembers
	quiet   *slog.Logger // for what is no change of state, or may be much
	router  *router.Router
	history *admin.History
	loops   int
	records records // of single requests
	admin   *admin.Server
	ready   func(listening) // may be nil
	program string          // that may take this process's place; empty if none may
	sockets handoff.Sockets
	before  *handoff.Link // to the process whose place this one takes; nil if there is none

	serving atomic.Pointer[[]*served]
	meeting meeting
	watch   *reload.Watch // of the configuration file; nil if there is none
	reloads *reload.Journal
	inForce atomic.Pointer[config]

	reloading sync.Mutex // held by a reload, as several may ask at once, and by an upgrade
	over      bool       // guarded by reloading: there are no more reloads
}

// listening is where a router listens.
type listening struct {
	clients []net.Addr
	admin   net.Addr // nil if there is none
}

// newServer returns a server that is still to be started. If ready is not nil it is called once,
// when the router listens. Program is what may take its place; empty means that nothing may.
func newServer(cfg config, load func() (config, error), log *slog.Logger, ready func(listening), program string) *server {
	history := admin.NewHistory()
	s := &server{cfg: cfg, load: load, log: history.Logger(log), quiet: log, history: history, ready: ready, program: program}
	s.inForce.Store(&s.cfg)
	s.reloads = reload.NewJournal(time.Now())
	return s
}

// serve runs the router until SIGTERM or SIGINT, and reloads it on SIGHUP, or when the file has
// changed.
func (s *server) serve() error {
	s.quiet.Info("starting", "version", versionLine(), "pid", os.Getpid())
	raiseDescriptorLimit(s.quiet)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, upgradeSignal)
	defer signal.Stop(signals)
	if err := s.succession(); err != nil {
		return err
	}
	if err := s.records.start(&s.cfg, s.quiet); err != nil {
		return err
	}
	defer s.records.close(s.quiet)
	if ended, err := s.start(); ended || err != nil {
		return err
	}
	defer s.leave()
	s.sayEngine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.router.Run(ctx) })
	for _, p := range s.pools() {
		p.begin(ctx)
	}
	if s.watch != nil {
		g.Go(func() error { s.watchFile(ctx); return nil })
	}
	g.Go(func() error {
		defer cancel()
		if err := s.listen(ctx, g); err != nil {
			return err
		}
		s.obey(ctx, g, signals)
		return nil
	})
	err := g.Wait()
	s.settle()
	for _, p := range s.pools() {
		p.end()
	}
	return err
}

// start makes all that is needed before clients can be served. It may have to wait for a
// first server to be found, and reports whether a signal ended that.
func (s *server) start() (ended bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if s.cfg.Membership.Enabled {
		if err := s.release(); err != nil {
			return false, err
		}
	}
	if err := s.startPools(ctx); err != nil {
		s.leave()
		return ctx.Err() != nil, err
	}
	if err := s.build(); err != nil {
		s.leave()
		return false, err
	}
	return false, nil
}

// retire lets the other routers tell clients no more of this one.
func (s *server) retire() {
	if s.cfg.AdvertiseSelf == "" {
		return
	}
	if err := s.pools()[0].members.cluster.SetNote(""); err != nil {
		s.log.Warn("the other routers may not know that this one drains", "err", err)
	}
}

// leave ends membership, with a good-bye to the other routers.
func (s *server) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	for _, p := range s.pools() { // the last one ends the gossip
		if err := p.leave(ctx); err != nil {
			s.log.Warn("good-bye to the other routers not finished", "err", err)
		}
	}
}

// goodbye is how long it may take.
const goodbye = 3 * time.Second

// gcPercent is how much the heap grows before garbage is collected, unless GOGC says otherwise. A request leaves none, so
// collecting twice as often as Go would costs nothing and gives back half of what a burst of clients took; see docs/performance.md.
const gcPercent = 50

// build makes the router.
func (s *server) build() (err error) {
	s.loops = s.cfg.Loops
	if s.loops == 0 {
		s.loops = runtime.NumCPU()
	}
	// The loops keep their processors busy at load; one more is for everything else.
	runtime.GOMAXPROCS(s.loops + 1)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	c := router.Config{
		Loops:          s.loops,
		Engine:         s.engine(),
		Spare:          true, // as set above
		Routes:         s.cfg.routes(s.cfg.Routes),
		Clients:        s.cfg.clients(),
		MaxClients:     s.cfg.MaxClients,
		TellFull:       s.cfg.TellFull,
		MaxOutstanding: s.cfg.MaxOutstanding,
		MaxLine:        s.cfg.MaxLine,
		IdleTimeout:    time.Duration(s.cfg.IdleTimeout),
		SlowTimeout:    time.Duration(s.cfg.SlowTimeout),
		Nodes:          s.nodes(),
		Reached:        s.history.Stir,
		Record:         s.cfg.Log.recording(s.records.put()),
		Log:            s.quiet,
	}
	for _, p := range s.pools() {
		c.Pools = append(c.Pools, p.config(p.cfg, time.Duration(s.cfg.Membership.FailoverTTL)))
	}
	if s.router, err = router.New(c); err != nil {
		return err
	}
	for i, pool := range s.router.Pools() {
		s.pools()[i].serve(pool, s.loops)
	}
	for _, doubt := range s.cfg.doubts() {
		s.log.Warn(doubt)
	}
	return nil
}

// listen opens the listeners and says so; what they need on the side runs in g.
func (s *server) listen(ctx context.Context, g *errgroup.Group) error {
	var at listening
	if s.cfg.Admin != "" {
		ln, err := s.sockets.Listen(reactor.SplitAddress(s.cfg.Admin))
		if err != nil {
			return fmt.Errorf("cannot listen for admin: %w", err)
		}
		c, err := s.adminConfig(ctx, ln)
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		s.admin = admin.New(c)
		g.Go(func() error { return s.admin.Serve(ln) })
		at.admin = ln.Addr()
		s.quiet.Info("admin listening", "addr", at.admin.String())
	}
	for i := range s.cfg.Listen {
		l, err := s.cfg.Listen[i].open(s.quiet, s.sockets.Listen)
		if err == nil {
			l.opts.Routes = s.cfg.routes(s.cfg.Listen[i].Routes)
			err = s.router.Serve(l.ln, l.opts)
		}
		if err != nil {
			return errors.Join(err, s.closeAdmin())
		}
		a := l.ln.Addr()
		at.clients = append(at.clients, a)
		s.quiet.Info("listening", "network", a.Network(), "addr", a.String(), "tls", l.opts.TLS != nil)
	}
	for _, addr := range s.sockets.Unused() {
		s.log.Warn("a socket that was handed over is not in the configuration", "addr", addr)
	}
	if s.admin != nil {
		s.admin.SetReady(true)
	}
	if s.before != nil {
		g.Go(func() error { s.adopt(); return nil })
	}
	notify(s.quiet)
	if s.ready != nil {
		s.ready(at)
	}
	return nil
}

func (s *server) closeAdmin() error {
	if s.admin == nil {
		return nil
	}
	return s.admin.Close()
}
