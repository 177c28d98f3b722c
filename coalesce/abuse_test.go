package coalesce

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The server hangs, and a thousand gets wait, each with its own deadline: each is
// answered once, at its deadline, or by the flight that follows.
func TestLeaderHangs(t *testing.T) {
	d := newDesk(t, Config{})
	hung := d.ask("k", "leader", Leader)
	d.Sent()
	for i := range 1000 {
		d.now += ms
		d.ask("k", fmt.Sprint(i), Follower)
	}
	expired := d.Expire(nil, second+500*ms)
	if len(expired) != 500 || expired[0] != "0" || expired[499] != "499" {
		t.Fatalf("%d gets expire", len(expired))
	}
	again := d.fails(hung, second+500*ms) // the connection is given up
	d.carries(hung, "leader")
	if again.Len() != 500 {
		t.Fatalf("%d gets are tried again", again.Len())
	}
	if last := d.lands(again, 2*second); last != nil {
		t.Errorf("one more flight, for %d", last.Len())
	}
	crew := d.crews[again]
	if first, _ := d.Pop(&crew); first != "500" || crew.Len() != 499 {
		t.Errorf("%s is first of %d", first, crew.Len()+1)
	}
	if d.Len() != 0 || d.late.newer != &d.late {
		t.Errorf("%d flights are left", d.Len())
	}
}

// One key is deleted and set in a loop while it is read: every write is sent at once, what
// waited before it goes first, and nothing piles up.
func TestKeyWrittenInALoop(t *testing.T) {
	d := newDesk(t, Config{})
	for i := range 1000 {
		before := d.ask("k", "before", Leader)
		d.Sent()
		d.ask("k", "behind", Follower)
		flushed := d.Seal(1, []byte("k"), d.now)
		if flushed == nil || flushed.First() != "behind" {
			t.Fatalf("write %d does not send who waited", i)
		}
		d.lands(before, d.now)
		d.carries(before, "before")
		d.lands(flushed, d.now)
		d.carries(flushed, "behind")
	}
	if d.Len() != 0 || len(d.freeFlights) > 2 || d.freeCount > 2 {
		t.Errorf("%d flights, and %d and %d kept for later", d.Len(), len(d.freeFlights), d.freeCount)
	}
}

// A key that is deleted and set in a loop costs one query for each deletion, and memory
// for one key.
func TestLeaseOfKeyDeletedInALoop(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	for range 1000 {
		d.written("k", "") // the deletion
		d.miss("k", "a", Hold)
		d.miss("k", "b", Park)
		d.now += ms
		d.written("k", "b+") // the set
	}
	s := d.Stats()
	if s.Granted != 1000 || s.Used != 1000 || s.Keys != 1 || s.Waiting != 0 || len(d.held) != 0 {
		t.Errorf("%+v, %d held", s, len(d.held))
	}
}

// A client takes leases and never stores. What it can do to others is to make them wait
// for one lease each time it is first, and until their deadline at most.
func TestLeaseNeverUsed(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	d.miss("k", "greedy", Hold)
	d.miss("k", "patient", Park)
	waits := 1
	for d.expire(""); ; waits++ {
		d.now += 200 * ms
		woken, _ := d.Expire(nil, d.now)
		if len(woken) != 1 || woken[0].Who != "patient" {
			t.Fatalf("at %v: %+v", d.now, woken)
		}
		if d.now >= second {
			if woken[0].Reread {
				t.Error("waits on after its deadline")
			}
			break
		}
		d.miss("k", "greedy", Hold) // is first again
		v, _ := d.Missed(&Miss[string]{Hash: 1, Key: []byte("k"), Ticket: d.Ticket(), Client: 'p', Who: "patient", Deadline: second, Now: d.now})
		if v != Park {
			t.Fatalf("at %v the verdict is %v", d.now, v)
		}
	}
	if waits != 5 {
		t.Errorf("waited for %d leases", waits)
	}
}

// A client that takes leases of ever new keys takes no more memory than that of the
// limit; for keys beyond it misses are shown as if there were no leases.
func TestLeaseOfEveryKey(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{MaxLeases: 100})
	for i := range 1000 {
		want := Hold
		if i >= 100 {
			want = Pass
		}
		d.miss(strings.Repeat("x", 246)+fmt.Sprintf("%04d", i), "greedy", want)
	}
	d.miss("k", "b", Pass)
	if s := d.Stats(); s.Keys != 100 || len(d.held) != 100 {
		t.Errorf("%+v", s)
	}
	d.now += 200 * time.Millisecond
	d.expire("")
	d.now += 200 * time.Millisecond
	d.expire("")
	if s := d.Stats(); s.Keys != 0 || len(d.held) != 0 {
		t.Errorf("later %+v", s)
	}
	d.miss("k", "b", Hold)
}
