package memcachedtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Steady holds arguments that make a server's replies a function of the requests alone. With its LRU thread running,
// memcached now and then holds an item while a decr wants to shorten it in place, and the value then loses the padding
// that it has otherwise.
var Steady = []string{"-o", "no_lru_maintainer,no_lru_crawler"}

// Server is one real memcached process at a fixed address, of loopback unless it was started elsewhere. Its methods report failures on the test it was
// started for and must be called from that test's goroutine; Addr may be called from anywhere.
type Server struct {
	tb   testing.TB
	addr string
	args []string
	at   Place         // nil for this machine's own network
	cmd  *exec.Cmd     // nil while stopped
	done chan struct{} // closed when cmd has been waited for
	log  Output        // stderr of every process so far
}

// Start runs memcached with the given extra arguments on a port of its own and returns when it answers. The process
// is killed when the test ends, and what it wrote to standard error is logged if the test failed.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	Need(tb, "memcached")
	s := StartLater(tb, args...)
	s.Restart()
	return s
}

// StartN starts n servers as Start does, side by side.
func StartN(tb testing.TB, n int, args ...string) []*Server {
	tb.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Start(tb, args...)
	}
	return servers
}

// StartLater returns a server that is not running yet: its address refuses connections until Restart.
func StartLater(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, addr: Reserve(tb), args: args}
	tb.Cleanup(s.cleanup)
	return s
}

// StartUnix starts memcached on a unix socket instead; its Addr is unix: and the path.
func StartUnix(tb testing.TB, args ...string) *Server {
	tb.Helper()
	Need(tb, "memcached")
	s := &Server{tb: tb, addr: unixPrefix + filepath.Join(tb.TempDir(), "memcached.sock"), args: args}
	tb.Cleanup(s.cleanup)
	s.Restart()
	return s
}

// Place is another network to run a server in, such as a namespace.
type Place interface {
	// IP returns the address to listen on.
	IP() string
	// Command returns a command that runs there, with the process id of the program itself.
	Command(program string, args ...string) *exec.Cmd
	// DialTimeout connects from there over TCP.
	DialTimeout(address string, limit time.Duration) (net.Conn, error)
}

// StartAt runs memcached at a place, on port 11211, and returns when it answers there.
func StartAt(tb testing.TB, p Place, args ...string) *Server {
	tb.Helper()
	Need(tb, "memcached")
	s := &Server{tb: tb, addr: net.JoinHostPort(p.IP(), "11211"), args: args, at: p}
	tb.Cleanup(s.cleanup)
	s.Restart()
	return s
}

// command returns a command that runs where the server does.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	if s.at != nil {
		return s.at.Command(program, args...)
	}
	return exec.Command(program, args...)
}

// dial connects to the server.
func (s *Server) dial(timeout time.Duration) (net.Conn, error) {
	if s.at != nil {
		return s.at.DialTimeout(s.addr, timeout)
	}
	return Dial(s.addr, timeout)
}

// Addrs returns the addresses of servers, in order.
func Addrs(servers []*Server) []string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Addr returns host:port, or unix:/path for a server of StartUnix; it stays the same for the life of the Server.
func (s *Server) Addr() string { return s.addr }

// PID returns the process id of the running server, 0 while it is stopped.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Stop kills the process without warning, as a crash would, and returns when it is gone. Stopping twice is harmless.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill() // also ends a paused process; an error means that it is gone already
	<-s.done
	s.cmd = nil
}

// Restart starts the process (again, if it was running) at the same address, with empty memory, and returns when it
// answers.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	cmd := s.command("memcached", s.commandLine()...)
	cmd.Stderr = &s.log
	if err := cmd.Start(); err != nil {
		s.tb.Fatalf("cannot start memcached: %v", err)
	}
	s.cmd, s.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		cmd.Wait() // the exit status says nothing: most servers end by Kill
	}(s.done)
	s.waitReady()
}

// Pause stops the process with SIGSTOP: its kernel still accepts connections and bytes, but nothing is answered. It
// returns when every thread has stopped, which is some time after the signal was sent.
func (s *Server) Pause() {
	s.tb.Helper()
	s.signal(syscall.SIGSTOP)
	deadline := time.Now().Add(startTimeout)
	for !stopped(s.PID()) {
		if time.Now().After(deadline) {
			s.tb.Fatalf("memcached %s does not stop", s.addr)
		}
		time.Sleep(time.Millisecond)
	}
}

// stopped tells whether all threads of a process are stopped, as far as this system's /proc tells.
func stopped(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is sound
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		_, state, found := bytes.Cut(stat, []byte(") "))
		if err == nil && found && state[0] != 'T' {
			return false
		}
	}
	return true
}

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if s.cmd == nil {
		s.tb.Fatalf("cannot send %v to memcached %s: it is stopped", sig, s.addr)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatalf("cannot send %v to memcached %s: %v", sig, s.addr, err)
	}
}

func (s *Server) commandLine() []string {
	var args []string
	if path, ok := strings.CutPrefix(s.addr, unixPrefix); ok {
		args = []string{"-s", path}
	} else {
		host, port, _ := net.SplitHostPort(s.addr) // Reserve has made it
		args = []string{"-l", host, "-p", port, "-U", "0"}
	}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "root")
	}
	return append(append(args, "-t", "2"), s.args...)
}

// waitReady returns once the server has answered one request.
func (s *Server) waitReady() {
	s.tb.Helper()
	deadline := time.Now().Add(startTimeout)
	for !s.answers() {
		select {
		case <-s.done:
			s.tb.Fatalf("memcached %s ended at start: %s", s.addr, s.log.String())
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("memcached %s does not answer: %s", s.addr, s.log.String())
		}
	}
}

// answers tells whether a memcached, or something that speaks like one, replies to one version command, be it that it
// wants to know who asks. Of one that speaks TLS it is enough that it accepts.
func (s *Server) answers() bool {
	c, err := s.dial(time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if tls := slices.Contains(s.args, "-Z"); tls {
		return true
	}
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("version\r\n")); err != nil {
		return false
	}
	reply := make([]byte, 64)
	n, _ := c.Read(reply)
	text := string(reply[:n])
	return strings.HasPrefix(text, "VERSION ") || text == "CLIENT_ERROR unauthenticated\r\n"
}

func (s *Server) cleanup() {
	s.Stop()
	if log := s.log.String(); s.tb.Failed() && log != "" {
		s.tb.Logf("memcached %s wrote: %s", s.addr, log)
	}
}

// Stat reads one number from the server's general statistics, such as cmd_get.
func (s *Server) Stat(name string) int {
	s.tb.Helper()
	c, err := s.dial(startTimeout)
	if err != nil {
		s.tb.Fatalf("cannot reach memcached %s: %v", s.addr, err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(startTimeout))
	c.Write([]byte("stats\r\n"))
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for !bytes.HasSuffix(all.Bytes(), []byte("END\r\n")) {
		n, err := c.Read(buf)
		if err != nil {
			s.tb.Fatalf("cannot read statistics of memcached %s: %v", s.addr, err)
		}
		all.Write(buf[:n])
	}
	_, rest, found := strings.Cut(all.String(), "STAT "+name+" ")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(value)
	if !found || err != nil {
		s.tb.Fatalf("memcached %s has no number named %q", s.addr, name)
	}
	return n
}
