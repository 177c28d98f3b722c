package farm

import (
	"testing"
	"time"

	"cacherouter/balance"
)

// One machine that works on one at a time: what waits can be worked out by hand.
func TestQueueByHand(t *testing.T) {
	// A request each 10 ms that takes 25 ms: the n-th waits n times 15 ms.
	o, err := Run(Config{Policy: balance.RoundRobin, Machines: []Machine{Constant(1, 25*time.Millisecond)}, Requests: 5, Gap: Evenly(100)})
	if err != nil {
		t.Fatal(err)
	}
	for n, took := range o.Took {
		if want := time.Duration(25+15*n) * time.Millisecond; took != want {
			t.Errorf("request %d took %v, want %v", n, took, want)
		}
	}
	if got := o.Percentile(0.5); got != 55*time.Millisecond {
		t.Errorf("p50 %v, want 55 ms", got)
	}
	if got := o.Above(55 * time.Millisecond); got != 0.4 {
		t.Errorf("%v took above 55 ms, want 0.4", got)
	}
	// They arrive at 10 to 50 ms and the last ends at 135: 275 ms inside in all.
	if got, want := o.Inside[0], 275.0/135; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%v inside on average, want %v", got, want)
	}
}

func TestUnknownPolicyIsRefused(t *testing.T) {
	if _, err := Run(Config{Policy: "none", Machines: []Machine{Constant(1, 1)}}); err == nil {
		t.Error("ran with an unknown policy")
	}
}

// Machines that report get as much as they say they can take: one of twice the speed twice as much.
func TestReportsSteer(t *testing.T) {
	o, err := Run(Config{Policy: balance.Reported, Balancers: 2, Reports: time.Second, Requests: 30_000, Gap: Evenly(500),
		Machines: []Machine{Constant(1, time.Millisecond), Constant(1, 2*time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	// The first 10 of 60 s go by turns: 1/2 of a sixth and 2/3 of the rest.
	if got, want := o.Share(0), 0.5/6+2./3*5/6; got < want-0.01 || got > want+0.01 {
		t.Errorf("the fast one got %.3f of the requests, want %.3f", got, want)
	}
}
