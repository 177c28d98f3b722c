package pace

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestsStartAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Duration
		begin := time.Now()
		r, err := Run(t.Context(), Plan{Rate: 100, Workers: 3, For: time.Second}, func(int, int) {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, time.Since(begin))
		})
		if err != nil || r.Started != 100 || r.Late != 1 || len(starts) != 100 { // the first is due at once
			t.Fatalf("%+v, %v, %d starts", r, err, len(starts))
		}
		slices.Sort(starts)
		for i, at := range starts {
			if want := time.Duration(i) * 10 * time.Millisecond; at != want {
				t.Errorf("request %d started at %v, want %v", i, at, want)
			}
		}
		if r.Delay.Max() > 1 || r.Took != 990*time.Millisecond {
			t.Errorf("delay %d ns, took %v", r.Delay.Max(), r.Took)
		}
	})
}

// A target that stalls for a second once must show in the latency of all that was due meanwhile.
func TestAStallIsChargedToAllRequestsThatWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(t.Context(), Plan{Rate: 100, Workers: 1, Count: 300}, func(_, n int) {
			if n == 50 {
				time.Sleep(time.Second)
			}
		})
		if err != nil || r.Started != 300 || r.Late < 100 {
			t.Fatalf("%+v, %v", r, err)
		}
		// 100 of 300 waited, from a second down to 10 ms.
		if p83 := time.Duration(r.Latency.ValueAtQuantile(83)); p83 < 450*time.Millisecond || p83 > 550*time.Millisecond {
			t.Errorf("p83 is %v, want about half a second", p83)
		}
	})
}

func TestWorkersAreUsedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make([]sync.Mutex, 4)
		_, err := Run(t.Context(), Plan{Rate: 1000, Workers: 4, Count: 500}, func(worker, _ int) {
			if !busy[worker].TryLock() {
				t.Errorf("worker %d is used twice at a time", worker)
				return
			}
			defer busy[worker].Unlock()
			time.Sleep(5 * time.Millisecond)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestEndOfContextEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, err := Run(ctx, Plan{Rate: 10, Workers: 2}, func(int, int) {})
		if err != nil || r.Started < 10 || r.Started > 11 {
			t.Errorf("%d started, %v", r.Started, err)
		}
	})
}

func TestPlansThatCannotBeRun(t *testing.T) {
	for _, p := range []Plan{{}, {Rate: 1}, {Workers: 1}, {Rate: -1, Workers: 1}} {
		if _, err := Run(t.Context(), p, func(int, int) {}); err == nil {
			t.Errorf("%+v was run", p)
		}
	}
}
