//go:build linux

package fleet

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logged is what a router would have written.
func logged(r *Router, message string, args ...any) {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Warn(message, args...)
	r.note(string(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})))
}

func status(r *Router, server, from, to string) {
	logged(r, "server status", "server", server, "from", from, "to", to, "view", 3)
}

func TestEventsAreReadAsTheyWereLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Router{fleet: &Fleet{}}
		begin := time.Now()
		logged(r, "server status", "server", "a b", "err", `it said "no \ = more"`, "empty", "", "n", 7)
		time.Sleep(time.Second)
		logged(r, "draining", "signal", "terminated")
		r.note("panic: no event")
		r.note("")
		got := r.Events("server status", time.Time{})
		want := []Event{{At: begin, Message: "server status", Fields: map[string]string{
			"time": got[0].Fields["time"], "level": "WARN", "msg": "server status",
			"server": "a b", "err": `it said \"no \\ = more\"`, "empty": "", "n": "7",
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := len(r.Events("server status", begin.Add(time.Millisecond))); n != 0 {
			t.Errorf("%d events after the last", n)
		}
		if n := len(r.Events("draining", begin.Add(time.Second))); n != 1 {
			t.Errorf("%d events of one", n)
		}
	})
}

func TestOnlyMovesOfKeysAreChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := &Fleet{}
		f.Routers = []*Router{{fleet: f}, {fleet: f}}
		status(f.Routers[0], "s01", "in", "in") // as at a start
		status(f.Routers[0], "s01", "in", "away")
		status(f.Routers[0], "s01", "away", "in")
		status(f.Routers[0], "s01", "in", "away")
		time.Sleep(4 * time.Second)
		status(f.Routers[0], "s01", "away", "out")
		status(f.Routers[0], "s02", "in", "draining")
		time.Sleep(time.Second)
		status(f.Routers[1], "s01", "away", "out")
		status(f.Routers[0], "s02", "draining", "out")
		status(f.Routers[0], "s02", "out", "in")
		want := []Change{
			{begin.Add(4 * time.Second), "s01", false}, {begin.Add(4 * time.Second), "s02", false},
			{begin.Add(5 * time.Second), "s02", true},
		}
		if diff := cmp.Diff(want, f.Routers[0].Changes(begin)); diff != "" {
			t.Error(diff)
		}
		if n := f.MostChanges(begin); n != 3 {
			t.Errorf("%d changes, want 3", n)
		}
		if diff := cmp.Diff([]time.Time{begin.Add(4 * time.Second), begin.Add(5 * time.Second)}, f.ChangedAt("s01", false, begin)); diff != "" {
			t.Error(diff)
		}
		if at := f.ChangedAt("s02", true, begin); at[0].IsZero() || !at[1].IsZero() {
			t.Errorf("s02 is back at %v", at)
		}
		if diff := cmp.Diff([]string{"s01"}, f.Routers[0].Out()); diff != "" {
			t.Error(diff)
		}
	})
}
