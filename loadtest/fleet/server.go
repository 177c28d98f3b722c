//go:build linux

package fleet

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"cacherouter/loadtest/process"
)

// firstServer is the host number of the first server.
const firstServer = 10

// restartPause is longer than the second within which memcached does not believe what was saved.
const restartPause = 2100 * time.Millisecond

// Server is a memcached with a fixed address. While it is down nobody listens there.
type Server struct {
	Name string
	Addr string // host:port
	// Front is where routers reach it; Addr, unless the fleet's configuration puts something there.
	Front string

	host string
	args []string
	proc *process.Process // nil while it is down
}

func (f *Fleet) newServer(i int) *Server {
	s := &Server{Name: fmt.Sprintf("s%02d", i), host: fmt.Sprintf("%s%d", f.network, firstServer+i)}
	s.Addr = fmt.Sprintf("%s:%d", s.host, serverPort)
	s.args = []string{"-l", s.host, "-p", strconv.Itoa(serverPort), "-U", "0", "-t", "1", "-m", "64", "-c", "4096"}
	if os.Geteuid() == 0 {
		s.args = append(s.args, "-u", "root")
	}
	if f.config.Keep {
		s.args = append(s.args, "-e", f.path(s.Name+".memory"))
	}
	return s
}

// Start starts the process and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	p, err := process.Start(ctx, process.Command{Name: "memcached " + s.Name, Path: "memcached", Args: s.args})
	if err != nil {
		return err
	}
	if err := p.Until(ctx, func() bool { return process.Answers(s.Addr) }); err != nil {
		return err
	}
	s.proc = p
	return nil
}

// Kill ends the process at once, if there is one; what it held is gone, and connections to it are
// refused.
func (s *Server) Kill() {
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
}

// Pause stops the process where it is: its kernel still takes connections and bytes, and nobody
// answers. It must be up.
func (s *Server) Pause() error { return s.proc.Pause() }

// Resume lets it go on with what it held.
func (s *Server) Resume() error { return s.proc.Resume() }

// Replace ends the process in order and starts a new one, which has taken over what the old one
// held if the fleet's configuration says Keep (memcached's own warm restart).
func (s *Server) Replace(ctx context.Context) error {
	if err := s.proc.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-s.proc.Ended():
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(restartPause):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Start(ctx)
}
