package hotkey

import (
	"testing"
	"time"
)

// perCall returns how long a call of f takes, of 4096 in a row.
func perCall(f func()) time.Duration {
	const calls = 4096
	began := time.Now()
	for range calls {
		f()
	}
	return time.Since(began) / calls
}

// An update takes no more than 30 ns, also for the keys that fight for a slot. What else
// the machine does makes rounds slower, so the fastest of some seconds counts; and where
// none is that fast, as on a slow or busy processor, it must still be no slower than
// counting the same keys in a map. With the race detector, which looks at each access of
// ours and at none inside a map, raceFactor times that.
func TestUpdateIsFast(t *testing.T) {
	const limit = 30 * time.Nanosecond
	st, c, at := newStream(0.99), NewCounter(1), 0
	inMap := make(map[uint64]uint32)
	update := func() {
		c.Touch(st.hashes[at&(len(st.keys)-1)], st.keys[at&(len(st.keys)-1)])
		at++
	}
	count := func() {
		inMap[st.hashes[at&(len(st.keys)-1)]]++
		at++
	}
	for range st.keys {
		count()
	}
	got, other := perCall(update), perCall(count)
	for start := time.Now(); got > limit && time.Since(start) < 3*time.Second; {
		got, other = min(got, perCall(update)), min(other, perCall(count))
	}
	t.Logf("an update takes %v, one in a map %v", got, other)
	if got > limit && got > raceFactor*other {
		t.Errorf("an update takes %v, more than %v, and one in a map takes %v", got, limit, other)
	}
}
