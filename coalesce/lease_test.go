package coalesce

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

type leaseDesk struct {
	t *testing.T
	*Leases[string]
	now time.Duration
}

func newLeaseDesk(t *testing.T, c LeaseConfig) *leaseDesk {
	t.Helper()
	l, err := NewLeases[string](c)
	if err != nil {
		t.Fatal(err)
	}
	return &leaseDesk{t: t, Leases: l}
}

// miss is a get of key that was sent just now and missed; its client is the first byte
// of its name.
func (d *leaseDesk) miss(key, who string, want Verdict) uint64 {
	d.t.Helper()
	return d.late(key, who, d.Ticket(), want)
}

// late is a get that was sent when the ticket was taken.
func (d *leaseDesk) late(key, who string, ticket uint64, want Verdict) uint64 {
	d.t.Helper()
	v, id := d.Missed(&Miss[string]{Hash: 1, Key: []byte(key), Ticket: ticket, Client: uint64(who[0]), Who: who, Deadline: d.now + second, Now: d.now})
	if v != want {
		d.t.Fatalf("%s gets verdict %v, want %v", who, v, want)
	}
	if (v == Hold) != (id != 0) {
		d.t.Fatalf("verdict %v comes with id %d", v, id)
	}
	return id
}

func (d *leaseDesk) woken(got []Woken[string], want string) {
	d.t.Helper()
	var all []string
	for _, w := range got {
		if w.Reread {
			w.Who += "+"
		}
		all = append(all, w.Who)
	}
	if diff := cmp.Diff(want, strings.Join(all, " ")); diff != "" {
		d.t.Fatal(diff)
	}
}

func (d *leaseDesk) expire(want string) {
	d.t.Helper()
	woken, _ := d.Expire(nil, d.now)
	d.woken(woken, want)
}

func (d *leaseDesk) written(key, want string) {
	d.t.Helper()
	d.woken(d.Written(nil, 1, []byte(key), d.now), want)
}

func TestLeaseEndsWithWrite(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	d.written("k", "")
	d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	before := d.Ticket()
	d.miss("k", "c", Park)
	d.miss("other", "x", Hold)
	d.written("k", "b+ c+")
	d.late("k", "d", before, Reread) // it missed before the write
	d.miss("k", "e", Hold)           // the value is gone already
	want := LeaseStats{Granted: 3, Parked: 2, Reread: 1, Used: 1, Keys: 2}
	if diff := cmp.Diff(want, d.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestLeaseExpires(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	d.now = 199 * ms
	d.expire("")
	d.now = 200 * ms
	d.expire("b+")
	d.miss("k", "b", Hold)
	d.miss("k", "a", Park)
	d.now = 400 * ms
	d.expire("a+")
	d.now = 600 * ms
	d.expire("")
	if n := d.Stats().Keys; n != 0 {
		t.Errorf("%d keys are remembered for ever", n)
	}
	for i := range d.stripes {
		if d.stripes[i].Load() != 0 {
			t.Errorf("stripe %d is not empty", i)
		}
	}
}

func TestLeaseHolderGone(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	id := d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	d.woken(d.End(nil, id, d.now), "b+")
	d.miss("k", "b", Hold)
	d.miss("k", "c", Park)
	d.woken(d.End(nil, id, d.now), "") // of an older lease
}

func TestLeaseDoesNotParkItsHolder(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	d.miss("k", "a", Hold)
	d.miss("k", "a again", Pass)
}

func TestLeaseNeverParks(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{})
	d.miss("k", "a", Hold)
	m := Miss[string]{Hash: 1, Key: []byte("k"), Client: 'b', Who: "b", Deadline: second, Never: true}
	if v, _ := d.Missed(&m); v != Pass {
		t.Errorf("verdict %v on one that must not wait", v)
	}
	m.Never, m.Deadline = false, 0
	if v, _ := d.Missed(&m); v != Pass {
		t.Errorf("verdict %v on one whose time is over", v)
	}
}

// A get is parked no longer than its deadline, whatever its lease.
func TestLeaseParkedDeadline(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{Duration: 600 * ms})
	d.now = -500 * ms
	d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	d.now = -400 * ms
	d.miss("k", "c", Park)
	d.now = 100 * ms
	d.expire("b+ c+")
	d.miss("k", "d", Hold)
	d.late("k", "e", d.Ticket(), Park)
	d.now = 650 * ms
	d.late("k", "f", d.Ticket(), Park)
	d.now = 700 * ms
	d.expire("e+ f+")

	d = newLeaseDesk(t, LeaseConfig{Duration: 5 * second})
	d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	d.now = 100 * ms
	d.miss("k", "c", Park)
	d.now = second
	d.expire("b")
	d.now = second + 99*ms
	d.expire("")
	d.now = second + 100*ms
	d.expire("c")
}

// Keys that are not in the database either must not cost every client its patience.
func TestLeaseFruitless(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{Fruitless: 2})
	d.miss("k", "a", Hold)
	d.miss("k", "b", Park)
	d.now += 200 * ms
	d.expire("b+")
	d.miss("k", "b", Hold)
	d.miss("k", "c", Park)
	d.now += 200 * ms
	d.expire("c")
	d.now += 1999 * ms
	d.expire("")
	d.miss("k", "d", Pass)
	d.now += ms
	d.expire("")
	d.miss("k", "d", Hold)

	d.now += 200 * ms
	d.expire("") // fruitless once
	d.written("k", "")
	d.miss("k", "e", Hold)
	d.miss("k", "f", Park)
	d.now += 200 * ms
	d.expire("f+") // once again: a write came between
}

func TestLeaseBounds(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{MaxLeases: 2, MaxParked: 1})
	d.miss("k", "a", Hold)
	d.miss("l", "a", Hold)
	d.miss("m", "a", Pass)
	d.miss("k", "b", Park)
	d.miss("l", "c", Pass)
	d.written("k", "b+")
	d.miss("l", "c", Park)
}

func TestLeaseConfig(t *testing.T) {
	for _, c := range []LeaseConfig{{Duration: -1}, {Pause: -1}, {MaxLeases: -1}, {MaxParked: -1}, {Fruitless: -1}} {
		if _, err := NewLeases[int](c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// Whoever is parked is woken once, by the deadline at the latest.
func TestLeaseWakesEverybody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, err := NewLeases[time.Duration](LeaseConfig{Fruitless: rapid.IntRange(0, 2).Draw(rt, "fruitless")})
		if err != nil {
			rt.Fatal(err)
		}
		var ids []uint64
		var woken []Woken[time.Duration]
		now, parked, seen := time.Duration(0), 0, 0
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			key := []byte{byte(rapid.IntRange(0, 2).Draw(rt, "key"))}
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1, 2:
				deadline := now + time.Duration(rapid.IntRange(0, 900).Draw(rt, "patience"))*ms
				v, id := l.Missed(&Miss[time.Duration]{Hash: uint64(key[0]), Key: key, Client: rand.Uint64(), Who: deadline, Deadline: deadline, Now: now})
				if v == Park {
					parked++
				}
				ids = append(ids, id)
			case 3:
				woken = l.Written(woken, uint64(key[0]), key, now)
			case 4:
				if len(ids) > 0 {
					woken = l.End(woken, ids[rapid.IntRange(0, len(ids)-1).Draw(rt, "id")], now)
				}
			case 5:
				now += 10 * ms * time.Duration(rapid.IntRange(1, 10).Draw(rt, "wait"))
				woken, _ = l.Expire(woken, now)
			}
			for _, w := range woken[seen:] {
				if w.Reread == (w.Who <= now) && l.cfg.Fruitless == 0 {
					rt.Fatalf("at %v one with deadline %v is woken: %+v", now, w.Who, w)
				}
			}
			seen = len(woken)
		}
		woken, _ = l.Expire(woken, now+second)
		woken, _ = l.Expire(woken, now+10*second)
		if s := l.Stats(); len(woken) != parked || s.Waiting != 0 || s.Keys != 0 || len(l.held) != 0 {
			rt.Fatalf("%d were parked and %d woken: %+v", parked, len(woken), s)
		}
	})
}

// A herd on several loops costs one query, and its other clients get the value.
func TestLeaseHerd(t *testing.T) {
	const loops, clients = 4, 250
	l, err := NewLeases[chan bool](LeaseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("k")
	var mu sync.Mutex // guards stored and queries
	stored, queries := false, 0
	get := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return stored
	}
	store := func() {
		mu.Lock()
		queries, stored = queries+1, true
		mu.Unlock()
		for _, w := range l.Written(nil, 1, key, 0) {
			w.Who <- w.Reread
		}
	}
	client := func(id uint64) error {
		wake := make(chan bool, 1)
		for {
			ticket := l.Ticket()
			if get() {
				return nil
			}
			switch v, _ := l.Missed(&Miss[chan bool]{Hash: 1, Key: key, Ticket: ticket, Client: id, Who: wake, Deadline: second}); v {
			case Hold:
				store()
			case Park:
				if !<-wake {
					return fmt.Errorf("client %d is shown its miss", id)
				}
			case Pass:
				return fmt.Errorf("client %d is not parked", id)
			}
		}
	}
	var wg sync.WaitGroup
	for i := range loops * clients {
		wg.Go(func() {
			if err := client(uint64(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if queries != 1 {
		t.Errorf("%d queries", queries)
	}
}

// BenchmarkWritten is what a write pays when there are no leases.
func BenchmarkWritten(b *testing.B) {
	l, err := NewLeases[int](LeaseConfig{})
	if err != nil {
		b.Fatal(err)
	}
	key := []byte("user:profile:00000001")
	b.ReportAllocs()
	for b.Loop() {
		l.Written(nil, 1, key, 0)
	}
}

// elsewhere is a miss of a key whose place the server keeps for somebody who fills it.
func (d *leaseDesk) elsewhere(key, who string, want Verdict) {
	d.t.Helper()
	v, _ := d.Missed(&Miss[string]{Hash: 1, Key: []byte(key), Ticket: d.Ticket(), Client: uint64(who[0]), Who: who, Filling: true, Deadline: d.now + second, Now: d.now})
	if v != want {
		d.t.Fatalf("%s gets verdict %v, want %v", who, v, want)
	}
}

// Those who wait for somebody elsewhere look now and then, and when the time of a lease is
// over one of them is let go.
func TestFilledElsewhere(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{Duration: 80 * ms})
	d.elsewhere("k", "a1", Park)
	d.elsewhere("k", "b1", Park)
	for d.now = 10 * ms; d.now < 80*ms; d.now += 10 * ms {
		d.now -= ms
		d.expire("")
		d.now += ms
		d.expire("a1+ b1+")
		d.elsewhere("k", "a1", Park)
		d.elsewhere("k", "b1", Park)
	}
	d.expire("a1+ b1+")
	d.elsewhere("k", "a1", Hold)
	d.elsewhere("k", "b1", Park)
	d.woken(d.Written(nil, 1, []byte("k"), d.now), "b1+")
	if s := d.Stats(); s.Granted != 1 || s.Used != 1 || s.Expired != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	d.elsewhere("j", "a2", Park) // was filled, and nobody waits when the time is over
	d.now += 10 * ms
	d.expire("a2+")
	d.now += 80 * ms
	d.expire("")
	d.elsewhere("j", "b2", Park)
}

// Whom the server has chosen gets the lease, whoever has it and whatever was written.
func TestServerChooses(t *testing.T) {
	d := newLeaseDesk(t, LeaseConfig{Duration: 80 * ms})
	won := func(key, who string, ticket uint64) uint64 {
		t.Helper()
		v, id := d.Missed(&Miss[string]{Hash: 1, Key: []byte(key), Ticket: ticket, Client: uint64(who[0]), Who: who, Won: true, Deadline: d.now + second, Now: d.now})
		if v != Hold {
			t.Fatalf("%s gets verdict %v", who, v)
		}
		return id
	}
	d.elsewhere("k", "a", Park)
	first := won("k", "b", d.Ticket())
	d.miss("k", "b2", Pass)
	d.miss("k", "c", Park)
	second := won("k", "d", d.Ticket())
	d.woken(d.End(nil, first, d.now), "") // has ended
	d.woken(d.End(nil, second, d.now), "a+ c+")
	before := d.Ticket()
	d.woken(d.Written(nil, 1, []byte("k"), d.now), "")
	third := won("k", "e", before)
	if held := d.Held([]uint64{first, second, third}); len(held) != 1 || held[0] != third {
		t.Errorf("held are %v of %d, %d and %d", held, first, second, third)
	}
}
