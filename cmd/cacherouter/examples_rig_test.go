package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/router"

	"golang.org/x/sync/errgroup"
)

// example is a router with a configuration of docs/examples, in front of real servers.
type example struct {
	t       *testing.T
	server  *server
	servers map[string]*memcachedtest.Server // by the host that they have in the file
	clients []*exampleClient                 // one of each listener
	log     memcachedtest.Output
}

// exampleClient is a connection.
type exampleClient struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

var exampleAddress = regexp.MustCompile(`(10\.0\.\d+\.\d+):11211`)

// startExample runs a router with an example whose addresses are those of real servers.
func startExample(t *testing.T, file string) *example {
	t.Helper()
	e := &example{t: t, servers: map[string]*memcachedtest.Server{}}
	text, err := os.ReadFile(filepath.Join("../../docs/examples", file))
	if err != nil {
		t.Fatal(err)
	}
	text = exampleAddress.ReplaceAllFunc(text, func(b []byte) []byte {
		host := string(exampleAddress.FindSubmatch(b)[1])
		if e.servers[host] == nil {
			e.servers[host] = memcachedtest.Start(t, memcachedtest.Steady...)
		}
		return []byte(e.servers[host].Addr())
	})
	e.start(string(text))
	return e
}

// start runs the router with a configuration.
func (e *example) start(text string) {
	t := e.t
	t.Helper()
	cfg, err := loadConfig(writeConfig(t, text))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Admin, cfg.Loops = "", 1
	logger := slog.New(slog.NewTextHandler(&e.log, nil))
	e.server = newServer(cfg, nil, logger, nil, "")
	if ended, err := e.server.start(); ended || err != nil {
		t.Fatalf("ended %v, %v", ended, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.server.router.Run(ctx) })
	for _, p := range e.server.pools() {
		p.begin(ctx)
	}
	t.Cleanup(func() {
		e.server.router.StopListening()
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		for _, p := range e.server.pools() {
			p.end()
		}
		e.server.leave()
		if t.Failed() {
			t.Log(e.log.String())
		}
	})
	for i := range cfg.Listen {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.server.router.Serve(ln, router.Listen{Routes: cfg.routes(cfg.Listen[i].Routes)}); err != nil {
			t.Fatal(err)
		}
		e.clients = append(e.clients, e.dial(ln.Addr().String()))
	}
}

func (e *example) dial(addr string) *exampleClient {
	e.t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(3 * time.Minute))
	return &exampleClient{e.t, c, bufio.NewReader(c)}
}

// at returns a connection that leads to a server directly.
func (e *example) at(host string) *exampleClient { return e.dial(e.servers[host].Addr()) }

// items returns how many items servers hold, of which the hosts begin alike.
func (e *example) items(hosts string) (n int) {
	for host, s := range e.servers {
		if strings.HasPrefix(host, hosts) {
			n += s.Stat("curr_items")
		}
	}
	return n
}

// ask sends a request and returns the line that answers it, or the value.
func (c *exampleClient) ask(request string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.c, request+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
	line := c.line()
	if strings.HasPrefix(line, "VALUE ") {
		value := c.line()
		c.line() // END
		return strings.Fields(line)[1] + "=" + value
	}
	return line
}

func (c *exampleClient) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// is asks and compares.
func (c *exampleClient) is(request, want string) {
	c.t.Helper()
	if got := c.ask(request); got != want {
		c.t.Errorf("%q is answered %q, want %q", request, got, want)
	}
}

func (c *exampleClient) set(key, value string) {
	c.t.Helper()
	c.is(fmt.Sprintf("set %s 0 0 %d\r\n%s", key, len(value), value), "STORED")
}

// eventually waits until a request has an answer.
func (c *exampleClient) eventually(request, want string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got := c.ask(request)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q is answered %q, never %q", request, got, want)
		}
	}
}

const nothing = "END"
