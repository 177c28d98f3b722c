package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// A proxy may stand in a server's place: what it splits and joins by itself comes back as from one server.
func TestGetsThroughNutcracker(t *testing.T) {
	memcachedtest.Need(t, "nutcracker")
	s := memcachedtest.Addrs(memcachedtest.StartN(t, 4, memcachedtest.Steady...))
	addr := freeAddress(t)
	startNutcracker(t, writeConfig(t, fmt.Sprintf("p:\n  listen: %s\n  servers:\n   - %s:1\n   - %s:1\n   - %s:1\n   - %s:1\n", addr, s[0], s[1], s[2], s[3])), addr)
	e := &example{t: t}
	e.start(fmt.Sprintf("pool: {servers: [%q]}", addr))
	c := e.clients[0]
	const keys = 30
	var gets strings.Builder
	for i := range keys {
		c.set(fmt.Sprint("k", i), fmt.Sprint(i))
		fmt.Fprintf(&gets, "get k%d\r\n", i)
	}
	if _, err := io.WriteString(c.c, gets.String()); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if line, value, end := c.line(), c.line(), c.line(); line != fmt.Sprintf("VALUE k%d 0 %d", i, len(value)) || value != fmt.Sprint(i) || end != nothing {
			t.Fatalf("get k%d is answered with %q, %q, %q", i, line, value, end)
		}
	}
	all, err := e.server.router.Snapshots(t.Context())
	if err != nil || all[0].Servers[addr].Joined == 0 {
		t.Errorf("no gets were joined: %v, %+v", err, all)
	}
}
