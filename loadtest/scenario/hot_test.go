//go:build linux

package scenario

import (
	"slices"
	"testing"
	"time"
)

func TestTheNearCacheSparesTheFullestServer(t *testing.T) {
	s := alone(t)
	const d = 400 * time.Millisecond
	without, err := s.heat(direct, d)
	s.must(t, err)
	with, err := s.heat(near, d)
	s.must(t, err)
	if got := without.few.peak(); got < 4 || got > 5 {
		t.Errorf("the fullest server had %.2f of the mean, want about 4.5: %s", got, without.few)
	}
	if got := with.few.peak(); got > 1.5 {
		t.Errorf("with the near cache it has %.2f of the mean: %s", got, with.few)
	}
	for _, sp := range []spread{without.many, without.few, with.many, with.few} {
		if sp.wrong != 0 || sp.hits != 1 || sp.rate <= 0 || sp.p99 <= 0 {
			t.Errorf("%d wrong: %s", sp.wrong, sp)
		}
	}
}

func TestPeakIsTheFullestToTheMean(t *testing.T) {
	f := func(gets []int, want float64) {
		t.Helper()
		if got := (spread{gets: gets}).peak(); got != want {
			t.Errorf("%v: %v, want %v", gets, got, want)
		}
	}
	f([]int{5, 5, 5, 5}, 1)
	f([]int{0, 12, 0, 0}, 4)
	f([]int{0, 0}, 0)
}

func TestAStampedeAsksEachServerOnceALoopAndTheOriginOnce(t *testing.T) {
	s := alone(t)
	s.Repeats = 1
	plain, err := s.rushes(false, "coalesce: off")
	s.must(t, err)
	flights, err := s.rushes(false, "coalesce: strict")
	s.must(t, err)
	leases, err := s.rushes(true, "lease: {enabled: true, time: 10s, patience: 10s}") // the machine may be busy
	s.must(t, err)
	if !slices.Equal(plain.gets, []int{crowdSize}) || plain.failed != 0 {
		t.Errorf("without flights: %s", plain)
	}
	if flights.gets[0] > stampedeLoops || !slices.Equal(flights.gets, flights.flights) || flights.failed != 0 {
		t.Errorf("with flights: %s", flights)
	}
	if !slices.Equal(leases.asked, []int{1}) || leases.p99[0] < originTime || leases.failed != 0 {
		t.Errorf("with leases: %s", leases)
	}
}
