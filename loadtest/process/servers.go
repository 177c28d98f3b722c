//go:build linux

package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Server is a running process that serves memcached clients at Addr ("host:port").
type Server struct {
	*Process
	Addr string
}

// ErrNotInstalled is in the error when a program that must be installed is not.
var ErrNotInstalled = exec.ErrNotFound

// StartMemcached starts a memcached with the given number of threads on a port of its own choice
// on the loopback, with args added. Files it needs go to dir.
func StartMemcached(ctx context.Context, dir string, threads int, args ...string) (*Server, error) {
	port, err := os.CreateTemp(dir, "memcached-port-")
	if err != nil {
		return nil, fmt.Errorf("cannot start memcached: %w", err)
	}
	port.Close()
	flags := []string{"-l", "127.0.0.1", "-p", "-1", "-U", "0", "-t", strconv.Itoa(threads), "-m", "256", "-c", "4096"}
	if os.Geteuid() == 0 {
		flags = append(flags, "-u", "root") // it must write the port file
	}
	p, err := Start(ctx, Command{
		Name: "memcached", Path: "memcached", Args: append(flags, args...),
		Env: []string{"MEMCACHED_PORT_FILENAME=" + port.Name()},
	})
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p}
	return s.serving(ctx, func() bool {
		s.Addr = portFile(port.Name())
		return s.Addr != "" && Answers(s.Addr)
	})
}

// StartMemcachedOn is StartMemcached with one thread and many addresses without ports, which are all served at one
// port.
func StartMemcachedOn(ctx context.Context, dir string, addresses []string, args ...string) (*Server, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, fmt.Errorf("cannot start memcached: %w", err)
	}
	_, port, _ := net.SplitHostPort(ports[0])
	return StartMemcached(ctx, dir, 1, append([]string{"-p", port, "-l", strings.Join(addresses, ",")}, args...)...)
}

// portFile reads the address from memcached's port file, whose lines are like "TCP INET: 41234".
func portFile(name string) string {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		if port, ok := strings.CutPrefix(line, "TCP INET: "); ok && strings.HasSuffix(port, "\n") {
			return "127.0.0.1:" + strings.TrimSpace(port)
		}
	}
	return ""
}

// StartNutcracker starts a nutcracker in front of the backends with fnv1a_64 and ketama, as its
// documentation recommends; the rest is its default, except that it connects at start and never
// ejects.
func StartNutcracker(ctx context.Context, dir string, backends []string) (*Server, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, fmt.Errorf("cannot start nutcracker: %w", err)
	}
	if dir, err = os.MkdirTemp(dir, "nutcracker-"); err != nil {
		return nil, fmt.Errorf("cannot start nutcracker: %w", err)
	}
	s := &Server{Addr: ports[0]}
	config := filepath.Join(dir, "nutcracker.yml")
	text := fmt.Sprintf("pool:\n  listen: %s\n  hash: fnv1a_64\n  distribution: ketama\n"+
		"  preconnect: true\n  auto_eject_hosts: false\n  servers:\n", s.Addr)
	for _, b := range backends {
		text += "    - " + b + ":1\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("cannot start nutcracker: %w", err)
	}
	_, stats, _ := net.SplitHostPort(ports[1])
	s.Process, err = Start(ctx, Command{
		Name: "nutcracker", Path: "nutcracker",
		Args: []string{"-c", config, "-s", stats, "-a", "127.0.0.1", "-p", filepath.Join(dir, "nutcracker.pid")},
	})
	if err != nil {
		return nil, err
	}
	return s.serving(ctx, func() bool { return Answers(s.Addr) })
}

var listening = regexp.MustCompile(`msg=listening .*\baddr=(127\.0\.0\.1:\d+)`)

// StartRouter starts the cacherouter binary at path in front of the backends, with args added. Without backends they
// have to say what it is in front of.
func StartRouter(ctx context.Context, path string, backends []string, args ...string) (*Server, error) {
	s := &Server{}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	if len(backends) > 0 {
		args = append(args, "--backends", strings.Join(backends, ","))
	}
	p, err := Start(ctx, Command{
		Name: "cacherouter", Path: path, Args: args,
		Ready: func(line string) bool {
			found := listening.FindStringSubmatch(line)
			if found == nil {
				return false
			}
			s.Addr = found[1]
			return true
		},
	})
	if err != nil {
		return nil, err
	}
	s.Process = p
	return s, nil
}

// serving returns s when ready is true. When it gives up it stops the child.
func (s *Server) serving(ctx context.Context, ready func() bool) (*Server, error) {
	if err := s.Until(ctx, ready); err != nil {
		return nil, err
	}
	return s, nil
}

// Answers reports whether somebody listens at the address ("host:port").
func Answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// freePorts finds n loopback addresses that nobody listens on, for programs that cannot choose a
// port themselves. Another program may take one before it is used; starting again helps.
func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
