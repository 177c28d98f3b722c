//go:build linux

package router_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"

	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/reactor"
	"cacherouter/router"

	"golang.org/x/sys/unix"
)

// costStage is a router that does not run but is turned by hand, one client and three servers, all on one
// thread: what a side has sent is there before the next one looks. So the same requests take the
// same turns, calls and bytes each time, however busy the machine is.
type costStage struct {
	t       testing.TB
	name    string
	r       *router.Router
	turn    func(*router.Router) error
	client  int // descriptors
	servers []*costServer
	buf     []byte
}

// costServer answers requests that are whole with one write. It is not memcached, which answers a
// pipeline in as many writes as its timing makes it.
type costServer struct {
	ln  int
	fds []int // of connections
	out []byte
}

// newCostStage makes the stage with all that may cost something off, or as it is by default. On io_uring nothing
// is waited for, as a wait is what sends, and who would answer looks only after it.
func newCostStage(t testing.TB, e reactor.Engine, features bool) *costStage {
	s := &costStage{t: t, name: "plain", turn: router.Turn, buf: make([]byte, 1<<20)}
	var addrs []string
	for range 3 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		s.must(err)
		s.servers = append(s.servers, &costServer{ln: s.descriptor(ln.(*net.TCPListener))})
		addrs = append(addrs, ln.Addr().String())
	}
	c := config{Config: router.Config{Engine: e, Spare: true, Log: slog.New(slog.DiscardHandler)}}
	c.Pool = router.PoolConfig{Table: table(addrs...), Timeout: patience}
	if features {
		s.equip(&c.Pool)
	}
	if e == reactor.Uring {
		s.name, s.turn = "io_uring", router.TurnAtOnce
	}
	var err error
	s.r, err = c.router()
	s.must(err)
	s.dial()
	return s
}

// equip turns on what is on by default.
func (s *costStage) equip(c *router.PoolConfig) {
	s.name = "default"
	bound, err := bounded.New(bounded.Config{Weights: []int{1, 1, 1}, PerMille: 1250, Floor: 8, Depth: 2})
	s.must(err)
	c.Table.Bound, c.Table.Spill = bound, router.SpillHot
	c.JoinGets = true
	c.Membership, c.Coalesce, c.HotKeys = silent{}, &coalesce.Config{}, &hotkey.Config{}
}

func (s *costStage) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

// dial connects the client.
func (s *costStage) dial() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.must(s.r.Serve(ln, router.Listen{}))
	nc, err := net.Dial("tcp", ln.Addr().String())
	s.must(err)
	s.client = s.descriptor(nc.(*net.TCPConn))
}

// descriptor takes a socket away from the Go runtime.
func (s *costStage) descriptor(from interface {
	File() (*os.File, error)
	Close() error
}) int {
	f, err := from.File()
	s.must(err)
	fd, err := unix.Dup(int(f.Fd()))
	s.must(err)
	f.Close()
	from.Close()
	s.must(unix.SetNonblock(fd, true))
	return fd
}

// close closes the router's end of all, and then the others.
func (s *costStage) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.must(router.Close(ctx, s.r))
	s.r.StopListening()
	unix.Close(s.client)
	for _, srv := range s.servers {
		for _, fd := range append(srv.fds, srv.ln) {
			unix.Close(fd)
		}
	}
}

// repeat asks for a path n times. Who counts instructions knows it by its name.
//
//go:noinline
func (s *costStage) repeat(p costPath, n int) {
	for i := range n {
		s.ask(p.requests[i%len(p.requests)], p.reply)
	}
}

// cost measures a path, which must be warm.
func (s *costStage) cost(p costPath) cost {
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	before := router.Counted(s.r)
	s.repeat(p, costRounds)
	after := router.Counted(s.r)
	runtime.ReadMemStats(&is)
	return cost{
		Name:        s.name + ", " + p.name,
		Calls:       float64(after.Calls-before.Calls) / costRounds,
		Copied:      float64(after.Copied-before.Copied) / costRounds,
		Allocations: float64(is.Mallocs-was.Mallocs) / costRounds,
	}
}

// ask sends a request and turns the router until the reply is whole, which is as long as reply. It
// returns the reply, which stays until the next call.
func (s *costStage) ask(request []byte, reply int) []byte {
	s.send(s.client, request)
	for n := 0; ; {
		s.must(s.turn(s.r))
		for _, srv := range s.servers {
			srv.serve(s)
		}
		if n += s.receive(s.client, s.buf[n:]); n >= reply {
			return s.buf[:n]
		}
	}
}

func (s *costStage) send(fd int, b []byte) {
	if n, err := unix.Write(fd, b); err != nil || n < len(b) {
		s.t.Fatalf("the router took %d bytes of %d: %v", n, len(b), err)
	}
}

// receive reads what is there.
func (s *costStage) receive(fd int, b []byte) int {
	n, err := unix.Read(fd, b)
	if err == unix.EAGAIN {
		return 0
	}
	if err != nil || n == 0 {
		s.t.Fatalf("the router hung up: %v", err)
	}
	return n
}

// serve takes a server's new connections and answers what has come whole on each.
func (srv *costServer) serve(s *costStage) {
	if fd, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(srv.ln), 0, 0, unix.SOCK_NONBLOCK, 0, 0); errno == 0 {
		srv.fds = append(srv.fds, int(fd)) // in a way that allocates nothing
	}
	for _, fd := range srv.fds {
		n := s.receive(fd, s.buf)
		if srv.out = answers(srv.out[:0], s.buf[:n]); len(srv.out) > 0 {
			s.send(fd, srv.out)
		}
	}
}

// answers appends what a server says to requests, which are whole.
func answers(dst, in []byte) []byte {
	for len(in) > 0 {
		line, rest, _ := bytes.Cut(in, []byte("\r\n"))
		verb, args, _ := bytes.Cut(line, []byte(" "))
		switch string(verb) {
		case "get":
			dst, in = append(found(dst, args), "END\r\n"...), rest
		case "set":
			dst, in = append(dst, "STORED\r\n"...), rest[valueLen(args)+2:]
		case "delete":
			dst, in = append(dst, "DELETED\r\n"...), rest
		case "mg":
			dst, in = append(append(append(dst, "VA 100\r\n"...), costValue[:100]...), "\r\n"...), rest
		default:
			panic(fmt.Sprintf("bug: a server is asked %.100q", in))
		}
	}
	return dst
}

// found appends the items of keys. A key that begins with n is not there, and those that begin with l and h have
// large and huge values.
func found(dst, keys []byte) []byte {
	for len(keys) > 0 {
		var key []byte
		key, keys, _ = bytes.Cut(keys, []byte(" "))
		size := 100
		switch key[0] {
		case 'n':
			continue
		case 'l':
			size = costLarge
		case 'h':
			size = costHuge
		}
		dst = append(append(append(dst, "VALUE "...), key...), " 0 "...)
		dst = append(strconv.AppendInt(dst, int64(size), 10), "\r\n"...)
		dst = append(append(dst, costValue[:size]...), "\r\n"...)
	}
	return dst
}

// valueLen is the last number of a set's line.
func valueLen(args []byte) int {
	n := 0
	for _, d := range args[bytes.LastIndexByte(args, ' ')+1:] {
		n = 10*n + int(d-'0')
	}
	return n
}

// Sizes of values, in bytes.
const (
	costLarge = 20_000
	costHuge  = 100_000
)

var costValue = bytes.Repeat([]byte("v"), costHuge)
