//go:build linux

package scale

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/process"
)

// poser writes a program that says it is a router listening at addr, and only sleeps.
func poser(t *testing.T, addr string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "poser")
	script := "#!/bin/sh\necho level=INFO msg=listening network=tcp addr=" + addr + "\nexec sleep 60\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPointsAreMeasuredAndToldInATable(t *testing.T) {
	server := memcachedtest.Start(t)
	all, err := Measure(t.Context(), Config{
		Router: poser(t, server.Addr()), Only: []string{"hot keys"}, Rounds: 2, Duration: 20 * time.Millisecond, Layout: process.Free,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || len(all[0].Points) != 5 || len(all[0].Failed) > 0 {
		t.Fatalf("%+v", all)
	}
	for i, p := range all[0].Points {
		if len(p.Samples) != 2 || p.Median.Rate <= 0 || p.Resident == 0 || (p.Start > 0) != (i == 0) {
			t.Errorf("%+v", p)
		}
	}
	var text bytes.Buffer
	if err := WriteText(&text, all); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(text.String(), "\n"); lines != 6 || !strings.Contains(text.String(), "zipf:1.1") {
		t.Errorf("table is\n%s", &text)
	}
}

func TestEachDimensionComparesWithItsFirstPoint(t *testing.T) {
	for _, d := range dimensions {
		points := d.points()
		if len(points) < 3 || points[0].router == nil {
			t.Errorf("%s has %d points, the first with %v", d.name, len(points), points[0].router)
		}
		for _, p := range points {
			if err := p.plan("host:1").Validate(); err != nil {
				t.Errorf("%s, %s: %v", d.name, p.value, err)
			}
		}
	}
}

func TestServersOfARouter(t *testing.T) {
	s := &stage{}
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"} {
		s.servers = append(s.servers, &process.Server{Addr: addr})
	}
	if got := s.backends(5); !slices.Equal(got, []string{"127.0.1.1:1", "127.0.2.1:2", "127.0.3.1:3", "127.0.4.1:4", "127.0.1.2:1"}) {
		t.Errorf("servers are %v", got)
	}
	all := s.backends(processes * addresses)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != processes*addresses {
		t.Errorf("%d of %d servers have an address of their own", n, processes*addresses)
	}
	got := (&routerOf{pools: 2, routes: 3}).config([]string{"a:1", "b:2"})
	want := "pools:\n  p0: {servers: [a:1, b:2]}\n  p1: {servers: [a:1, b:2]}\nroutes:\n" +
		"  - {prefix: 'tenant0:', pool: p0}\n  - {prefix: 'tenant1:', pool: p1}\n  - {pool: p1}\n"
	if got != want {
		t.Errorf("configuration is\n%s", got)
	}
}
