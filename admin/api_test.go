package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/accesslog"
	"cacherouter/backend"
	"cacherouter/membership"
	"cacherouter/reload"
	"cacherouter/router"
)

func decode(t *testing.T, s *Server, path string, v any) {
	t.Helper()
	w := asked(s, "GET", path)
	if err := json.Unmarshal(w.Body.Bytes(), v); w.Code != 200 || err != nil {
		t.Fatalf("%s: %d %.300s %v", path, w.Code, w.Body, err)
	}
}

func TestHistory(t *testing.T) {
	h := NewHistory()
	_, stirred := h.since()
	h.Stir()
	select {
	case <-stirred:
	default:
		t.Error("nobody is told when something stirs")
	}
	log := h.Logger(slog.New(slog.DiscardHandler)).With("view", 7)
	_, news := h.since()
	log.Debug("not a change")
	log.Info("server state", "server", "a", "from", "up", "to", "down", "reason", "3 failures in a row", "took", 5)
	select {
	case <-news:
	default:
		t.Error("nobody is told of a change")
	}
	c := h.Changes()
	if len(c.Changes) != 1 || c.Seq != 1 {
		t.Fatalf("%+v", c)
	}
	got := c.Changes[0]
	if got.Server != "a" || got.From != "up" || got.To != "down" || got.Reason != "3 failures in a row" || got.What != "server state" ||
		got.Level != "info" || got.Details["took"] != "5" || got.Details["view"] != "7" || got.At.IsZero() {
		t.Errorf("%+v", got)
	}
	for i := range 250 {
		log.Warn(fmt.Sprint("change ", i))
	}
	c = h.Changes()
	if len(c.Changes) != maxChanges || c.Seq != 251 || c.Changes[0].What != "change 249" || c.Changes[maxChanges-1].What != "change 150" || c.Changes[0].Seq != 251 {
		t.Errorf("%d changes, seq %d, from %+v to %+v", len(c.Changes), c.Seq, c.Changes[0], c.Changes[len(c.Changes)-1])
	}
}

// The picture of slices whose sizes and neighbours are known.
func TestPlacement(t *testing.T) {
	s := New(Config{Router: newIdle(4), Placing: newIdle(4).placing})
	var p Placement
	decode(t, s, "/api/v1/placement", &p)
	if p.Total != 4 || len(p.Servers) != 4 || len(p.Cells) != numCells || len(p.TakerCells) != numCells || p.OthersShare != 0 {
		t.Fatalf("%+v", p)
	}
	for i, server := range p.Servers {
		if math.Abs(server.Share-0.25) > 1e-9 || len(server.Takers) != 1 || server.Takers[0].Server != p.Servers[(i+1)%4].Name || math.Abs(server.Takers[0].Share-1) > 1e-9 {
			t.Errorf("%+v", server)
		}
	}
	for i, home := range p.Cells {
		if home != i/90%4 || p.TakerCells[i] != (home+1)%4 {
			t.Fatalf("cell %d is of %d, and then of %d", i, home, p.TakerCells[i])
		}
	}
	decode(t, s, "/api/v1/placement?top=2&server=s00003", &p)
	if len(p.Servers) != 2 || p.Servers[0].Name != "s00003" || math.Abs(p.OthersShare-0.5) > 1e-9 || !slices.Contains(p.Cells, -1) {
		t.Errorf("two of four: %+v", p)
	}
	one := New(Config{Router: newIdle(1), Placing: newIdle(1).placing})
	decode(t, one, "/api/v1/placement", &p)
	if len(p.Servers[0].Takers) != 0 || len(p.TakerCells) != 0 || p.Servers[0].Share != 1 {
		t.Errorf("one server: %+v", p)
	}
	wants(t, asked(New(Config{Router: newIdle(1)}), "GET", "/api/v1/placement"), 404, "cannot be shown")
}

// With ten thousand servers an answer has the busiest and those in trouble, and says so.
func TestTenThousandServers(t *testing.T) {
	r := newIdle(10000)
	for _, k := range []int{5, 6, 7} {
		r.snap.Servers[r.table.Servers[k].Address] = backend.Stats{Connects: 1}
	}
	s := New(Config{Router: r, Placing: r.placing})
	s.SetReady(true)
	var e Event
	message := s.event(t.Context())
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(message), "data: ")), &e); err != nil {
		t.Fatal(err)
	}
	f := e.Servers
	if f.Total != 10000 || f.Shown > 2*eventServers || f.Shown < eventServers || f.Troubled != 3 || f.TroubledShown != 3 || len(message) > 64<<10 {
		t.Errorf("total %d, shown %d, troubled %d, of them shown %d, %d bytes", f.Total, f.Shown, f.Troubled, f.TroubledShown, len(message))
	}
	for _, name := range []string{"s00005", "s09999"} {
		if !slices.ContainsFunc(f.Servers, func(l ServerLoad) bool { return l.Name == name }) {
			t.Errorf("%s is not there", name)
		}
	}
	if o := e.Overview; o.Level != levelTrouble || !strings.HasPrefix(o.Sentence, "3 servers (s00005, s00006, s00007) cannot be reached") {
		t.Errorf("%s: %s", o.Level, o.Sentence)
	}
	if w := asked(s, "GET", "/api/v1/placement"); w.Body.Len() > 150<<10 {
		t.Errorf("the placement takes %d bytes", w.Body.Len())
	}
	wants(t, asked(s, "GET", "/api/v1/servers?top=20000"), 400, "1 to 10000")
	wants(t, asked(s, "GET", "/api/v1/servers?top=x"), 400, "1 to 10000")
}

func TestOverview(t *testing.T) {
	r := newIdle(2)
	s := New(Config{Name: "r1", Router: r, Local: true})
	var o Overview
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelWarning || !strings.Contains(o.Sentence, "starting or draining") {
		t.Errorf("before it serves: %+v", o)
	}
	s.SetReady(true)
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelWell || o.Sentence != "All is well: 2 servers serve." || len(o.Problems) != 0 || o.Requests <= 0 || o.HitRatio != nil || o.Router != "r1" || o.Actions != actionsOpen {
		t.Errorf("%+v", o)
	}
	r.snap.Shed[router.Low] += 1000
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelWarning || o.Refused <= 0 || !strings.Contains(o.Sentence, "% of the requests are refused") {
		t.Errorf("requests are refused: %+v", o)
	}
	r.snap.Failed += 1000
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelTrouble || !strings.Contains(o.Sentence, "% of the requests fail") {
		t.Errorf("requests fail: %+v", o)
	}
	r.snap.ServersUp = 0
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelTrouble || !strings.HasPrefix(o.Sentence, "No server can be used") {
		t.Errorf("no server: %+v", o)
	}
	wants(t, asked(s, "GET", "/api/v1/changes"), 404, "not remembered")
	wants(t, asked(New(Config{Router: r, Local: true, Reload: func(reload.Options) *reload.Report {
		return new(reload.Report).Fails(reload.Invalid, errors.New("line 3"))
	}}), "POST", "/api/v1/reload"), 422, "line 3")
}

func TestPhrase(t *testing.T) {
	f := func(text string, n int, want string) {
		t.Helper()
		if got := phrase(text, n); got != want {
			t.Errorf("%q of %d is %q, want %q", text, n, got, want)
		}
	}
	f("[is|are] out: [its|their] keys", 1, "is out: its keys")
	f("[is|are] out: [its|their] keys", 2, "are out: their keys")
	f("cannot be reached", 2, "cannot be reached")
	f("", 1, "")
}

func TestSlowRequests(t *testing.T) {
	slow := accesslog.NewSlow(10, slog.New(slog.DiscardHandler))
	idle := newIdle(1)
	idle.snap.Slow, idle.snap.SlowUnrecorded = 7, 4
	s := New(Config{Router: idle, Slow: slow, SlowOver: 50 * time.Millisecond})
	for _, key := range []string{"a", "b", "<c>"} {
		slow.Take([]router.Record{{Slow: true, Key: key, Took: time.Second}})
	}
	var got SlowRequests
	decode(t, s, "/api/v1/slow?last=2", &got)
	if got.Over != 0.05 || got.Total != 7 || got.Unrecorded != 4 || len(got.Requests) != 2 || got.Requests[0].Key != "<c>" || got.Requests[1].Seconds != 1 {
		t.Errorf("%+v", got)
	}
	wants(t, asked(s, "GET", "/api/v1/slow?last=0"), 400, "last: want 1 to 10000")
	decode(t, New(Config{Router: newIdle(1)}), "/api/v1/slow", &got)
	if got.Over != 0 || len(got.Requests) != 0 {
		t.Errorf("where none is slow: %+v", got)
	}
}

// What the loops cannot connect to is shown before membership has decided anything.
func TestUnreachedServerIsShown(t *testing.T) {
	f := newFleet(2, 2)
	addr := f.table.Servers[1].Address
	for i := range f.snaps {
		st := f.snaps[i].Servers[addr]
		st.Up, st.Connects = 0, 1
		f.snaps[i].Servers[addr] = st
		f.snaps[i].ServersUp = 1
	}
	s := f.server()
	s.SetReady(true)
	var servers Servers
	decode(t, s, "/api/v1/servers", &servers)
	const why = "cannot be reached at this moment: what becomes of its keys is decided within seconds"
	if a, b := servers.Servers[0], servers.Servers[1]; a.Trouble != "" || b.Trouble != levelWarning || b.Why != why {
		t.Errorf("%+v, %+v", a, b)
	}
	var o Overview
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelWarning || o.Sentence != "cache-0001 "+why+"." {
		t.Errorf("%s: %s", o.Level, o.Sentence)
	}
	f.state.Servers[1].Writes = membership.Refuse
	decode(t, s, "/api/v1/overview", &o)
	if o.Level != levelTrouble || strings.Contains(o.Sentence, "at this moment") {
		t.Errorf("%s: %s", o.Level, o.Sentence)
	}
}
