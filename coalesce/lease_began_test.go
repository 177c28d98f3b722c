package coalesce

import (
	"testing"
	"time"
)

// Who expires leases is told of the first, and may stop when there are no more.
func TestLeasesBegin(t *testing.T) {
	begun := 0
	d := newLeaseDesk(t, LeaseConfig{Began: func() { begun++ }})
	tell := func(wantBegun int, wantMore bool) {
		t.Helper()
		if _, more := d.Expire(nil, d.now); begun != wantBegun || more != wantMore {
			t.Errorf("at %v: begun %d times, more %v, want %d and %v", d.now, begun, more, wantBegun, wantMore)
		}
	}
	tell(0, false)
	d.miss("k", "a1", Hold)
	d.miss("l", "a2", Hold)
	tell(1, true)
	d.written("k", "")
	for range 10 { // both end, and are remembered as long again
		d.now += 100 * time.Millisecond
		d.Expire(nil, d.now)
	}
	tell(1, false)
	d.miss("k", "a3", Hold)
	tell(2, true)
}
