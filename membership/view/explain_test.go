package view

import (
	"testing"
	"time"

	"cacherouter/membership/health"
	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	explain := func() Explanation {
		t.Helper()
		e, ok := w.routers[0].node.Explain("s01", w.now)
		if !ok {
			t.Fatal("no explanation for a server that is listed")
		}
		return e
	}
	if _, ok := w.routers[0].node.Explain("nobody", w.now); ok {
		t.Error("an explanation for a server that is not listed")
	}
	w.routers[2].deaf["s01"] = true
	w.run(10 * time.Second)
	want := Explanation{
		Opinions: map[string]health.Opinion{"r0": health.Fine, "r1": health.Fine, "r2": health.Dead},
		Voters:   []string{"r0", "r1", "r2"}, Quorum: 2,
	}
	if diff := cmp.Diff(want, explain()); diff != "" {
		t.Errorf("one bad observer (-want +got):\n%s", diff)
	}
	w.servers["s01"].killed = true
	w.until(5*time.Second, "about to be moved", func() bool { return explain().Next == Out })
	if e := explain(); e.Status != Away || e.Penalty < 400 || e.At.Before(w.now) || !e.Until.IsZero() {
		t.Errorf("about to be moved: %+v", e)
	}
	w.run(3 * time.Second)
	if e := explain(); e.Status != Out || e.Penalty < 900 || e.Until.Before(w.now) || !e.At.IsZero() {
		t.Errorf("moved: %+v", e)
	}
}
