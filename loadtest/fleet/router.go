//go:build linux

package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"cacherouter/loadtest/process"
)

const (
	firstRouter = 100   // host number
	firstUser   = 61000 // user id, where we may choose
)

// Router is a router process with fixed addresses.
type Router struct {
	Name string
	Addr string // host:port for clients

	fleet *Fleet
	host  string
	user  uint32           // the process runs as; 0 is this process's own
	proc  *process.Process // nil while it is down

	mu     sync.Mutex // guards events
	events []Event
}

func (f *Fleet) newRouter(i int) *Router {
	r := &Router{Name: fmt.Sprintf("r%02d", i), fleet: f, host: fmt.Sprintf("%s%d", f.network, firstRouter+i)}
	r.Addr = fmt.Sprintf("%s:%d", r.host, clientPort)
	if os.Geteuid() == 0 {
		r.user = firstUser + uint32(i)
	}
	return r
}

// Start starts the process and returns when clients may connect.
func (r *Router) Start(ctx context.Context) error {
	if err := r.configure(); err != nil {
		return err
	}
	p, err := process.Start(ctx, process.Command{
		Name: "router " + r.Name, Path: r.fleet.config.Binary, Args: []string{"serve", "--config", r.configFile()},
		User: r.user, Line: r.note,
		Ready: func(line string) bool { return strings.Contains(line, "msg=listening ") },
	})
	r.proc = p
	return err
}

// Stop ends the process in order, Kill at once. Both return when it is gone, and do nothing to a
// router that is down.
func (r *Router) Stop() { r.end((*process.Process).Stop) }

// Kill ends the process at once.
func (r *Router) Kill() { r.end((*process.Process).Kill) }

func (r *Router) end(how func(*process.Process)) {
	if r.proc != nil {
		how(r.proc)
		r.proc = nil
	}
}

// Pause stops the process where it is. It must be up.
func (r *Router) Pause() error { return r.proc.Pause() }

// Resume lets it go on.
func (r *Router) Resume() error { return r.proc.Resume() }

// Crashed reports whether the process has ended although nobody ended it.
func (r *Router) Crashed() bool {
	if r.proc == nil {
		return false
	}
	select {
	case <-r.proc.Ended():
		return true
	default:
		return false
	}
}

func (r *Router) configFile() string { return r.fleet.path(r.Name + ".yml") }

// Usage is what the process has now. It must be up.
func (r *Router) Usage() (process.Usage, error) { return process.Used(r.proc.ID()) }

// Spoil has the router read a configuration that is not right. The next Reload, or List, brings the right
// one back.
func (r *Router) Spoil() error {
	if err := os.WriteFile(r.configFile(), []byte("pool:\n  servers: nonsense\n"), 0o644); err != nil {
		return fmt.Errorf("cannot spoil the configuration of router %s: %w", r.Name, err)
	}
	return r.proc.Signal(syscall.SIGHUP)
}

// Drain has all routers move a server's keys away, and returns when the server may be stopped. Undrain lets
// it return, which takes a while. Both are what an administrator would do at this router.
func (r *Router) Drain(ctx context.Context, s *Server) error { return r.manage(ctx, s, "--wait") }

// Undrain is told of at Drain.
func (r *Router) Undrain(ctx context.Context, s *Server) error { return r.manage(ctx, s, "--undo") }

func (r *Router) manage(ctx context.Context, s *Server, flag string) error {
	text, err := exec.CommandContext(ctx, r.fleet.config.Binary, "drain", s.Name, flag, "--admin", r.admin()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot drain %s %s: %w: %s", s.Name, flag, err, text)
	}
	return nil
}

// reload has the router read its configuration again.
func (r *Router) reload() error {
	if err := r.configure(); err != nil {
		return err
	}
	return r.proc.Signal(syscall.SIGHUP)
}

// configure writes the router's configuration file.
func (r *Router) configure() error {
	if err := os.WriteFile(r.configFile(), []byte(r.configText()), 0o644); err != nil {
		return fmt.Errorf("cannot configure router %s: %w", r.Name, err)
	}
	return nil
}

func (r *Router) configText() string {
	f, b := r.fleet, &strings.Builder{}
	fmt.Fprintf(b, "name: %s\nlisten: [%q]\nadmin: %q\nloops: %d\n", r.Name, r.Addr, r.admin(), max(f.config.Loops, 1))
	if f.config.Routers > 1 && !f.config.Static {
		fmt.Fprintf(b, "gossip:\n  bind: %q\n  join:\n", fmt.Sprintf("%s:%d", r.host, gossipPort))
		for i := range f.config.Routers {
			fmt.Fprintf(b, "    - %q\n", fmt.Sprintf("%s%d:%d", f.network, firstRouter+i, gossipPort))
		}
	}
	fmt.Fprintf(b, "membership:\n  enabled: %v\n", !f.config.Static)
	if h := f.config.Handover; h > 0 {
		fmt.Fprintf(b, "  handover: %v\n", h)
	}
	fmt.Fprintf(b, "pool:\n  servers:\n")
	for _, s := range f.Servers[:f.listed] {
		fmt.Fprintf(b, "    - %q\n", s.Name+"="+s.Front)
	}
	if t := f.config.Timeout; t > 0 {
		fmt.Fprintf(b, "  timeout: %v\n  connect_timeout: %v\n", t, t)
	}
	for _, line := range f.config.Pool {
		fmt.Fprintf(b, "  %s\n", line)
	}
	return b.String()
}
