package pace

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEachRequestIsGivenOutOnceForItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.1, 1e6).Draw(t, "rate")
		takers, each := rapid.IntRange(1, 4).Draw(t, "takers"), rapid.IntRange(1, 100).Draw(t, "each")
		s := NewSchedule(rate)
		due := make([]time.Duration, takers*each)
		given := make([]int, takers*each)
		var taking sync.WaitGroup
		for i := range takers {
			taking.Go(func() {
				for j := range each {
					given[i*each+j], due[i*each+j] = s.Take()
				}
			})
		}
		taking.Wait()
		for i, n := range given {
			if want := float64(n) / rate * 1e9; math.Abs(float64(due[i])-want) > 1 {
				t.Fatalf("request %d is due after %v, want %.0f ns", n, due[i], want)
			}
		}
		slices.Sort(given)
		for i, n := range given {
			if n != i {
				t.Fatalf("request %d is missing or was given out twice", i)
			}
		}
	})
}
