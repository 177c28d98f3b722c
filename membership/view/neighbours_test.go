package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNeighbours(t *testing.T) {
	w := newWorld(t, 1, 3, 5, Config{})
	w.run(10 * time.Second)
	node := w.routers[0].node
	f := func(want ...Neighbour) {
		t.Helper()
		got := node.Neighbours()
		for i := range got {
			if got[i].Present != (w.now.Sub(got[i].Heard) < node.cfg.Fresh) {
				t.Errorf("%s was heard %v ago and is present: %v", got[i].Name, w.now.Sub(got[i].Heard), got[i].Present)
			}
			got[i].Heard = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	well := Neighbour{Present: true, Votes: true, SameList: true, SamePlacement: true}
	r1, r2 := well, well
	r1.Name, r2.Name = "r1", "r2"
	f(r1, r2)

	w.routers[1].node.SetParameters("other", w.now)
	w.run(10 * time.Second)
	r1.SameList, r1.SamePlacement, r1.Votes = false, false, false
	f(r1, r2)

	w.routers[2].node.Leave()
	w.run(time.Second)
	f(r1)
}
