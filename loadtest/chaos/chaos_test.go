package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// engine imitates as much of a Docker engine as faults need, to be interrupted and to refuse; the real one is
// asked in deploy/compose. Service "a" has two networks.
type engine struct {
	mu      sync.Mutex // guards all below
	status  string
	wires   []string
	asked   []string // what was changed
	refuse  string   // requests with this in their path
	changed chan struct{}
}

func startEngine(t *testing.T) (*engine, Config) {
	t.Helper()
	e := &engine{status: "running", wires: []string{"p_default", "p_gossip"}, changed: make(chan struct{}, 1)}
	socket := filepath.Join(t.TempDir(), "docker.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := http.Server{Handler: e}
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return e, Config{Socket: socket, Project: "p", Hold: time.Millisecond, Note: func(string) {}}
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Method == "GET" {
		e.tell(w, r)
		return
	}
	var about struct{ EndpointConfig endpoint }
	json.NewDecoder(r.Body).Decode(&about) // some have no body
	what := strings.TrimPrefix(r.URL.Path, "/")
	if e.refuse != "" && strings.Contains(what, e.refuse) {
		http.Error(w, "no", http.StatusConflict)
		return
	}
	e.asked = append(e.asked, strings.TrimSpace(what+" "+strings.Join(about.EndpointConfig.Aliases, ",")))
	switch id, do := filepath.Split(what); do {
	case "kill", "pause":
		e.status = map[string]string{"kill": "exited", "pause": "paused"}[do]
	case "start", "unpause":
		e.status = "running"
	case "disconnect", "connect":
		wire := filepath.Base(id)
		e.wires = slices.DeleteFunc(e.wires, func(s string) bool { return s == wire })
		if do == "connect" {
			e.wires = append(e.wires, wire)
		}
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// tell answers what does not change anything.
func (e *engine) tell(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/containers/json" {
		if strings.Contains(r.URL.Query().Get("filters"), "service=a") {
			fmt.Fprint(w, `[{"Id":"1"}]`)
		} else {
			fmt.Fprint(w, `[]`)
		}
		return
	}
	c := container{ID: "1"}
	c.State.Status = e.status
	c.NetworkSettings.Networks = map[string]*endpoint{}
	for _, wire := range e.wires {
		c.NetworkSettings.Networks[wire] = &endpoint{NetworkID: wire, Aliases: []string{"a"}}
	}
	json.NewEncoder(w).Encode(c)
}

func faults(t *testing.T, texts ...string) (all []Fault) {
	t.Helper()
	for _, text := range texts {
		var f Fault
		if err := f.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if f.String() != text {
			t.Errorf("%q is written %q", text, f)
		}
		all = append(all, f)
	}
	return all
}

func TestFaultsAreMadeAndTakenBack(t *testing.T) {
	e, c := startEngine(t)
	c.Faults = faults(t, "kill=a", "pause=a", "cut=a@gossip")
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{"containers/1/kill", "containers/1/start", "containers/1/pause", "containers/1/unpause",
		"networks/p_gossip/disconnect", "networks/p_gossip/connect a"}
	if diff := cmp.Diff(want, e.asked); diff != "" {
		t.Error(diff)
	}
	c.Faults = faults(t, "cut=a")
	if err := Run(t.Context(), c); err != nil || len(e.wires) != 2 || len(e.asked) != len(want)+4 {
		t.Errorf("a cut of all networks: %v, asked %q", err, e.asked[len(want):])
	}
}

func TestWrongNamesBreakNothing(t *testing.T) {
	for _, fault := range []string{"kill=b", "cut=a@nowhere"} {
		e, c := startEngine(t)
		c.Faults = faults(t, "kill=a", fault)
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), fault) || e.asked != nil {
			t.Errorf("%s: %v, asked %q", fault, err, e.asked)
		}
	}
}

// What was begun is taken back when the program is interrupted, and when the engine refuses the other half.
func TestFaultsDoNotStay(t *testing.T) {
	e, c := startEngine(t)
	c.Faults, c.Hold = faults(t, "pause=a", "kill=a"), time.Hour
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-e.changed; interrupt() }()
	if err := Run(ctx, c); err == nil || e.status != "running" || len(e.asked) != 2 {
		t.Errorf("interrupted: %v, it is %s after %q", err, e.status, e.asked)
	}
	e, c = startEngine(t)
	c.Faults, e.refuse = faults(t, "cut=a"), "p_gossip/disconnect"
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "refuses POST /networks/p_gossip/disconnect: no") || len(e.wires) != 2 {
		t.Errorf("refused: %v, the networks are %q", err, e.wires)
	}
}

func TestNoFaults(t *testing.T) {
	for _, text := range []string{"", "kill", "kill=", "burn=a", "cut=a@", "cut=@x", "kill=a@net"} {
		var f Fault
		if err := f.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %+v", text, f)
		}
	}
}
