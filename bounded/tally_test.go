package bounded

import "testing"

// A tally passes on the difference and nothing twice, and its loop knows of it before.
func TestTallySettles(t *testing.T) {
	b := must(t, Default(equal(3)))
	tally := NewTally(b)
	expect := func(when string, own, shared, total int) {
		t.Helper()
		if tally.InFlight(1) != own || b.InFlight(1) != shared || b.Total() != total {
			t.Errorf("%s: the loop knows of %d units, others of %d, in all of %d; want %d, %d and %d",
				when, tally.InFlight(1), b.InFlight(1), b.Total(), own, shared, total)
		}
	}
	tally.Add(1, 3)
	tally.Add(2, 2)
	tally.Add(2, -2)
	expect("before it settles", 3, 0, 0)
	tally.Settle()
	tally.Settle()
	expect("when it has settled", 3, 3, 3)
	tally.Add(1, -2)
	expect("when units come back", 1, 3, 3)
	tally.Settle()
	expect("at last", 1, 1, 1)
}

func TestTallyReleasingTooMuchPanics(t *testing.T) {
	tally := NewTally(must(t, Default(equal(1))))
	tally.Add(0, -1)
	defer func() {
		if recover() == nil {
			t.Error("units came back that were not taken")
		}
	}()
	tally.Settle()
}

func TestTallyAllocatesNothing(t *testing.T) {
	tally := NewTally(must(t, Default(equal(10))))
	turn := func() {
		for server := range 10 {
			tally.Add(server, 2)
			tally.Add(server, -1)
		}
		tally.Settle()
	}
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
