package ring

import (
	"slices"
	"testing"
)

// A look-up through the index finds the same point as a search of all points.
func TestIndexAgreesWithSearch(t *testing.T) {
	r, err := New(benchNames(30), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := func(hash uint64) {
		t.Helper()
		want, _ := slices.BinarySearch(r.points, hash)
		if got := r.find(hash); got != want%len(r.points) {
			t.Errorf("point of %#x is %d, want %d", hash, got, want%len(r.points))
		}
	}
	for _, p := range r.points {
		f(p - 1)
		f(p)
		f(p + 1)
	}
	f(0)
	f(1<<64 - 1)
}
