package membership_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/probe"
	"cacherouter/membership/view"
)

// What follows runs in processes of their own. They are told what to do in JSON on their
// standard input, say how they are on their standard output, and log to standard error.

// orders are what a process is told at first.
type orders struct {
	Router   string
	Servers  []discover.Server
	Gossip   gossip.Config
	View     view.Config
	Announce []discover.Server
	// Announced says that servers are also taken from announcements.
	Announced bool
	Listen    string // of a liar
}

// order is what a router is told later; what is zero is not meant.
type order struct {
	Keys  [][]byte
	Drain string
}

// report is how a router is.
type report struct {
	At      time.Time
	State   *membership.State
	Stats   membership.Stats
	Members []gossip.Member
	Process int // memory in bytes
}

// reportEvery is the time between two reports; changes of the state are reported at once.
const reportEvery = 200 * time.Millisecond

func beRouter() {
	in := bufio.NewReader(os.Stdin)
	var o orders
	must(decodeLine(in, &o))
	c := membership.Config{
		Router: o.Router, Prober: probe.TCP{}, Gossip: &o.Gossip, View: o.View, Announce: o.Announce,
		Sources: []*discover.Watcher{{Name: "static", Source: discover.Static(o.Servers)}},
	}
	if o.Announced {
		c.Announced = &discover.Announced{Prober: probe.TCP{Timeout: time.Second}}
		w := &discover.Watcher{Name: "announced", Source: c.Announced, Every: 500 * time.Millisecond, Shortest: 100 * time.Millisecond}
		c.Sources = append(c.Sources, w)
	}
	cl, err := membership.Start(context.Background(), c)
	must(err)
	go reportOf(cl)
	for {
		var next order
		if err := decodeLine(in, &next); err != nil {
			break
		}
		if next.Keys != nil {
			must(cl.SetGossipKeys(next.Keys))
		}
		if next.Drain != "" && !cl.Drain(next.Drain) {
			must(fmt.Errorf("cannot drain %s", next.Drain))
		}
	}
	must(cl.Close(context.Background()))
}

// reportOf writes reports until the process ends.
func reportOf(cl *membership.Cluster) {
	out := json.NewEncoder(os.Stdout)
	t := time.NewTicker(reportEvery)
	for {
		select {
		case <-t.C:
		case <-cl.Changed():
		}
		at := time.Now()
		r := report{At: at, State: cl.View(), Stats: cl.Stats(), Members: cl.Routers(), Process: resident()}
		if out.Encode(r) != nil {
			return // the test is over
		}
	}
}

// resident returns the memory that this process takes, in bytes.
func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	must(err)
	var size, pages int
	_, err = fmt.Sscan(string(b), &size, &pages)
	must(err)
	return pages * os.Getpagesize()
}

func beAgent() {
	in := bufio.NewReader(os.Stdin)
	var o orders
	must(decodeLine(in, &o))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, in) // until the test is over
		cancel()
	}()
	o.Gossip.Name = o.Router
	must(membership.Agent{Gossip: o.Gossip, Servers: o.Servers}.Run(ctx))
}

// beLiar listens where a memcached is said to be, and talks as a web server does.
func beLiar() {
	in := bufio.NewReader(os.Stdin)
	var o orders
	must(decodeLine(in, &o))
	l, err := net.Listen("tcp", o.Listen)
	must(err)
	go func() {
		for {
			c, err := l.Accept()
			must(err)
			go func() {
				defer c.Close()
				bufio.NewReader(c).ReadString('\n')
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			}()
		}
	}()
	io.Copy(io.Discard, in)
}

func decodeLine(r *bufio.Reader, v any) error {
	b, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

func must(err error) {
	if err != nil {
		slog.Error("giving up", "err", err)
		os.Exit(1)
	}
}
