package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/probe"
	"cacherouter/router"
)

// watching is an admin server of a router that watches real servers.
type watching struct {
	*Server
	t       *testing.T
	cluster *membership.Cluster
}

// shown is a router of one pool.
type shown struct{ *router.Router }

func (s shown) Table() *router.Table { return s.Pools()[0].Table() }

type homeIsFirst struct{}

func (homeIsFirst) Pick(dst []int, _ uint64, _ int) []int { return append(dst, 0) }

func watch(t *testing.T, servers []*memcachedtest.Server) *watching {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var list discover.Static
	table := &router.Table{Picker: homeIsFirst{}}
	for i, s := range servers {
		name := fmt.Sprint("s", i)
		list = append(list, discover.Server{Name: name, Address: s.Addr(), Weight: 1})
		table.Servers = append(table.Servers, router.Server{Name: name, Address: s.Addr()})
	}
	c := membership.Config{Router: "r", Sources: []*discover.Watcher{{Name: "list", Source: list, Log: log}}, Prober: probe.TCP{}, Log: log}
	c.Handover, c.Health.Interval, c.Health.Fast, c.View.Activation = 5*time.Second, 100*time.Millisecond, 100*time.Millisecond, time.Second
	cluster, err := membership.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(router.Config{Pools: []router.PoolConfig{{Table: table}}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, cluster.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	history := NewHistory()
	s := New(Config{Name: "r", Router: shown{r}, Membership: cluster, Local: true, History: history, Log: history.Logger(log)})
	s.SetReady(true)
	return &watching{s, t, cluster}
}

// ask asks as a client at an address does.
func (w *watching) ask(from, method, path string) (int, string) {
	w.t.Helper()
	req := httptest.NewRequest(method, path, nil)
	req.RemoteAddr, req.Host = from, "localhost"
	rec := httptest.NewRecorder()
	w.http.Handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

const here = "127.0.0.1:9"

// becomes waits until a page contains a text.
func (w *watching) becomes(path, want string) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, got := w.ask(here, "GET", path)
		if strings.Contains(got, want) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s does not come to say %q:\n%s", path, want, got)
		}
		time.Sleep(3 * time.Millisecond) // between two looks
	}
}

func TestMembersAndDrain(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	w := watch(t, servers)
	w.becomes("/readyz", "ready\n")
	f := func(from, method, path string, status int, want string) {
		t.Helper()
		if got, text := w.ask(from, method, path); got != status || !strings.Contains(text, want) {
			t.Errorf("%s %s from %s: %d %q, want %d, %q", method, path, from, got, text, status, want)
		}
	}
	f(here, "POST", "/api/v1/drain?server=nobody", 404, `"nobody"`)
	f(here, "POST", "/api/v1/undrain?server=s0", 409, "does not drain")
	f("10.0.0.1:9", "POST", "/api/v1/drain?server=s0", 403, "same host")
	f(here, "GET", "/api/v1/drain?server=s0", 405, "")
	f(here, "POST", "/api/v1/drain?server=s0", 200, `"name":"s0"`)
	w.becomes("/api/v1/members", `"status":"draining"`)
	f(here, "POST", "/api/v1/drain?server=s1", 409, "last one")

	_, text := w.ask("10.0.0.1:9", "GET", "/api/v1/members")
	var m Members
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if s := m.Servers[0]; m.Handover == nil || s.Status != "draining" || s.MayStop || s.Why.Opinions["r"] == "" || s.Why.Quorum != 1 {
		t.Errorf("in the hand-over: %s", text)
	}
	w.becomes("/api/v1/members", `"may_stop":true`)
	f(here, "GET", "/api/v1/routers", 200, `"known":1,"present":1,"voters":1,"frozen":false`)
	f(here, "POST", "/api/v1/undrain?server=s0", 200, "")
	w.becomes("/api/v1/members", `"status":"out"`)
	servers[1].Stop()
	w.becomes("/readyz", "no server is usable")
}

func TestMembershipMetrics(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	w := watch(t, servers)
	labels := fmt.Sprintf(`{addr=%q,`, servers[1].Addr())
	for _, want := range []string{
		"\ncacherouter_view_version 0\n", "\ncacherouter_view_agreed 1\n", "\ncacherouter_routers_present 1\n", "\ncacherouter_panic 0\n",
		`cacherouter_source_looks_total{source="list"}`, `cacherouter_view_info{list="`,
		"cacherouter_server_health" + labels + `health="up",server="s1"} 1`,
		"cacherouter_server_status" + labels + `server="s1",status="in"} 1`,
		"cacherouter_server_status" + labels + `server="s1",status="away"} 0`,
		"cacherouter_server_missed_keys" + labels + `server="s1"} 0`,
	} {
		w.becomes("/metrics", want)
	}
	servers[1].Stop()
	w.becomes("/metrics", "cacherouter_server_status"+labels+`server="s1",status="out"} 1`)
	w.cluster.Missed("s1", 1, []byte("key"))
	w.becomes("/metrics", "cacherouter_server_missed_keys"+labels+`server="s1"} 1`)
	w.becomes("/metrics", `cacherouter_server_health_changes_total{health="down"} 1`)
	w.becomes("/metrics", "\ncacherouter_placement_changes_total 1\n")
	if _, text := w.ask(here, "GET", "/metrics"); strings.Contains(text, "cacherouter_server_penalty"+labels+`server="s1"} 0`) {
		t.Error("a server that died has no penalty")
	}
}

// A client says what the router says, and when it says nothing.
func TestClient(t *testing.T) {
	w := watch(t, memcachedtest.StartN(t, 2))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- w.Serve(ln) }()
	c := Client{Address: ln.Addr().String()}
	if m, err := c.Members(t.Context()); err != nil || len(m.Servers) != 2 || m.Servers[0].Name != "s0" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.Drain(t.Context(), "a b&c", false); err == nil || !strings.Contains(err.Error(), `"a b&c"`) {
		t.Errorf("draining nobody: %v", err)
	}
	if err := c.Drain(t.Context(), "s1", false); err != nil {
		t.Error(err)
	}
	if err := c.Drain(t.Context(), "s1", true); err != nil {
		t.Error(err)
	}
	w.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := c.Members(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot ask the router at "+c.Address) {
		t.Errorf("nobody there: %v", err)
	}
}
