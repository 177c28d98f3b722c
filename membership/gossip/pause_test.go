package gossip

import "testing"

// TestPause: one that pauses gives its name and address to another, and takes both back when that
// is gone.
func TestPause(t *testing.T) {
	n := fleet(t, 2, Config{})
	addr := n[1].Address()
	if err := n[1].Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other is alone", together(n[0]))
	n[1].Send([]byte("x"))
	if m := n[1].Members(); len(m) > 0 {
		t.Errorf("the paused router sees %v", m)
	}
	if err := n[1].SetNote("x"); err == nil {
		t.Error("the paused router has told others of its note")
	}
	next := start(t, "r2", Config{Bind: addr, Join: []string{n[0].Address()}})
	eventually(t, "the new one is there", together(n[0], next))
	if err := n[1].Resume(); err == nil {
		t.Error("two routers have the same address")
	}
	next.crash()
	if err := n[1].Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old one is back", together(n[0], n[1]))
	n[0].Send([]byte("welcome"))
	eventually(t, "it hears", n[1].has("welcome"))
}
