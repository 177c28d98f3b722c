package coalesce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const second = time.Second

// desk is a table of gets that have names.
type desk struct {
	t *testing.T
	*Table[string]
	crews map[*Flight[string]]Crew[string] // of flights that are over
	now   time.Duration
	epoch uint64
	want  Want
}

func newDesk(t *testing.T, c Config) *desk {
	t.Helper()
	table, err := New[string](c)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, Table: table, crews: make(map[*Flight[string]]Crew[string])}
}

// ask asks for key on behalf of who, with a second of patience.
func (d *desk) ask(key, who string, want Role) *Flight[string] {
	d.t.Helper()
	own := new(Flight[string])
	own.Ask(uint64(len(key)), []byte(key), d.want, who, d.now+second)
	f, got := d.Join(own, d.epoch, d.now)
	if got != want {
		d.t.Fatalf("%s becomes %v, want %v", who, got, want)
	}
	return f
}

// lands ends a flight with an answer and returns the next one.
func (d *desk) lands(f *Flight[string], now time.Duration) *Flight[string] {
	var crew Crew[string]
	next := d.Landed(f, &crew, now)
	d.crews[f] = crew
	return next
}

// fails ends a flight without an answer and returns the next one.
func (d *desk) fails(f *Flight[string], now time.Duration) *Flight[string] {
	var crew Crew[string]
	next := d.Failed(f, &crew, now)
	d.crews[f] = crew
	return next
}

// carries answers all gets of a flight that is over.
func (d *desk) carries(f *Flight[string], want string) {
	d.t.Helper()
	crew := d.crews[f]
	var got []string
	for n := crew.Len(); n > 0; n-- {
		who, ok := d.Pop(&crew)
		if !ok || crew.Len() != n-1 {
			d.t.Fatalf("%d are left of %d after one", crew.Len(), n)
		}
		got = append(got, who)
	}
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		d.t.Fatal(diff)
	}
	if who, ok := d.Pop(&crew); ok {
		d.t.Fatalf("%q comes out of none", who)
	}
	delete(d.crews, f)
}

func TestOneFlightAtATime(t *testing.T) {
	d := newDesk(t, Config{})
	f := d.ask("k", "a", Leader)
	d.ask("k", "b", Follower)
	d.ask("other", "x", Leader)
	d.Sent()
	for i := range 1000 {
		d.ask("k", fmt.Sprint(i), Follower)
	}
	next := d.lands(f, 0)
	d.ask("k", "same turn", Follower)
	d.Sent()
	d.ask("k", "late", Follower)
	d.carries(f, "a b")
	if next.Len() != 1001 || next.First() != "0" || string(next.Key()) != "k" {
		t.Fatalf("the next flight carries %d, first %q, for %q", next.Len(), next.First(), next.Key())
	}
	last := d.lands(next, 0)
	if crew := d.crews[next]; crew.Len() != 1001 {
		t.Errorf("%d are answered by the second flight", crew.Len())
	}
	d.Sent()
	if d.lands(last, 0) != nil {
		t.Error("a flight follows for which nobody waits")
	}
	d.carries(last, "late")
	want := Stats{Led: 4, Joined: 2, Waited: 1001}
	if diff := cmp.Diff(want, d.Stats()); diff != "" {
		t.Error(diff)
	}
	if d.Len() != 1 {
		t.Errorf("%d keys have flights, want only the other", d.Len())
	}
}

func TestFlightsAskForAllThatIsWanted(t *testing.T) {
	d := newDesk(t, Config{})
	d.want = 0b01
	f := d.ask("k", "a", Leader)
	d.want = 0b10
	d.ask("k", "wants more", Follower)
	d.want = 0b01
	d.ask("k", "comes after", Follower)
	next := d.lands(f, 0)
	d.carries(f, "a")
	if next.Want() != 0b11 {
		t.Errorf("the next flight asks for %b", next.Want())
	}
	d.want = 0b10
	d.ask("k", "needs less", Follower)
	d.lands(next, 0)
	d.carries(next, "wants more comes after needs less")

	d.want = 0
	f = d.ask("k", "modest", Leader)
	d.Sent()
	d.ask("k", "modest too", Follower)
	if next = d.lands(f, 0); f.Want() != 0 || next.Want() != 0 {
		t.Errorf("flights ask for %b and %b, which earlier ones did", f.Want(), next.Want())
	}
}

func TestSeal(t *testing.T) {
	d := newDesk(t, Config{})
	first := d.ask("k", "a", Leader)
	d.Sent()
	d.ask("k", "b", Follower)
	flushed := d.Seal(1, []byte("k"), 0)
	if d.Seal(1, []byte("k"), 0) != nil {
		t.Error("sealed twice")
	}
	after := d.ask("k", "c", Leader)
	d.ask("k", "d", Follower)
	if d.lands(first, 0) != nil || d.lands(flushed, 0) != nil {
		t.Error("a sealed flight has a successor")
	}
	d.carries(first, "a")
	d.carries(flushed, "b")
	d.lands(after, 0)
	d.carries(after, "c d")
	if d.Len() != 0 {
		t.Errorf("%d flights are left", d.Len())
	}
}

func TestSealAll(t *testing.T) {
	d := newDesk(t, Config{})
	for i := range 1000 { // more than there are buckets at first
		d.ask(strings.Repeat("k", i), "a", Leader)
	}
	d.Sent()
	d.ask("", "b", Follower)
	d.ask("kk", "c", Follower)
	flushed := d.SealAll(nil, 0)
	if len(flushed) != 2 || d.Len() != 0 {
		t.Fatalf("%d flights are flushed and %d left", len(flushed), d.Len())
	}
	for _, f := range flushed {
		want := map[int]string{0: "b", 2: "c"}[len(f.Key())]
		d.lands(f, 0)
		d.carries(f, want)
	}
}

func TestFailure(t *testing.T) {
	d := newDesk(t, Config{MaxTries: 2})
	f := d.ask("k", "early", Leader)
	d.now = 300 * time.Millisecond
	d.ask("k", "joined", Follower)
	d.Sent()
	d.ask("k", "waited", Follower)
	again := d.fails(f, second)
	d.carries(f, "early") // its second is over
	d.ask("k", "new", Follower)
	d.Sent()
	third := d.fails(again, second)
	d.carries(again, "joined") // two flights failed under it
	d.lands(third, second)
	d.carries(third, "waited new")
	if got := d.Stats().Again; got != 3 {
		t.Errorf("%d tried again, want 3", got)
	}
}

// Gets fail with their flight if they may not try once more, unless others wait for the next.
func TestFailureWithoutRetry(t *testing.T) {
	asked := 0
	d := newDesk(t, Config{Retry: func() bool { asked++; return false }})
	f := d.ask("k", "a", Leader)
	d.ask("k", "b", Follower)
	d.Sent()
	if d.fails(f, 0) != nil {
		t.Error("there is a next flight")
	}
	d.carries(f, "a b")
	f = d.ask("k", "c", Leader)
	d.Sent()
	d.ask("k", "d", Follower)
	next := d.fails(f, 0)
	d.carries(f, "")
	d.fails(next, 2*second) // too late in any case
	d.carries(next, "c d")
	if asked != 1 || d.Stats().Again != 1 {
		t.Errorf("asked %d times, %d tried again", asked, d.Stats().Again)
	}
}

// Those whose flight failed go before those who came later.
func TestFailureKeepsOrder(t *testing.T) {
	d := newDesk(t, Config{})
	f := d.ask("k", "a", Leader)
	d.ask("k", "b", Follower)
	d.Sent()
	d.ask("k", "c", Follower)
	again := d.fails(f, 0)
	d.carries(f, "")
	d.lands(again, 0)
	d.carries(again, "a b c")
}

// A sealed flight that fails is led anew, and stays sealed.
func TestFailureOfSealed(t *testing.T) {
	d := newDesk(t, Config{})
	f := d.ask("k", "a", Leader)
	d.Seal(1, []byte("k"), 0)
	again := d.fails(f, 0)
	d.carries(f, "")
	d.ask("k", "b", Leader)
	if d.lands(again, 0) != nil {
		t.Error("the sealed flight has a successor")
	}
	d.carries(again, "a")
}

// A server that refuses at once must not make a flight fail for ever.
func TestFailureIsBounded(t *testing.T) {
	d := newDesk(t, Config{MaxTries: 3})
	n := 0
	for f := d.ask("k", "a", Leader); f != nil; n++ {
		next := d.fails(f, 0)
		d.carries(f, map[bool]string{true: "a"}[next == nil])
		f = next
	}
	if n != 3 {
		t.Errorf("failed %d times, want 3", n)
	}
}

func TestExpire(t *testing.T) {
	d := newDesk(t, Config{})
	hung := d.ask("k", "leader", Leader)
	d.Sent()
	for i := range 3 {
		d.now += 100 * time.Millisecond
		d.ask("k", fmt.Sprint(i), Follower)
	}
	expired := func(now time.Duration, want string) {
		t.Helper()
		if got := strings.Join(d.Expire(nil, now), " "); got != want {
			t.Errorf("at %v %q expire, want %q", now, got, want)
		}
	}
	expired(second+99*time.Millisecond, "") // the leader's time is kept by its call
	expired(second+200*time.Millisecond, "0 1")
	expired(second+200*time.Millisecond, "")
	expired(second+300*time.Millisecond, "2")
	if next := d.lands(hung, 2*second); next != nil {
		t.Errorf("a flight is sent for nobody: %d", next.Len())
	}
	d.carries(hung, "leader")
}

func TestInflightJoins(t *testing.T) {
	d := newDesk(t, Config{Mode: Inflight, MaxAge: 10 * time.Millisecond})
	d.epoch = 7
	f := d.ask("k", "a", Leader)
	d.Sent()
	d.now = 9 * time.Millisecond
	d.ask("k", "young", Follower)
	d.epoch = 8
	d.ask("k", "after a write", Follower)
	d.epoch = 7
	d.ask("k", "behind", Follower)
	next := d.lands(f, d.now)
	d.carries(f, "a young")
	d.Sent()
	d.now = 19 * time.Millisecond
	d.epoch = 8
	d.ask("k", "too old", Follower)
	last := d.lands(next, d.now)
	d.carries(next, "after a write behind")
	d.lands(last, d.now)
	d.carries(last, "too old")
}

func TestNobodyJoinsDuringWrite(t *testing.T) {
	d := newDesk(t, Config{Mode: Inflight})
	f := d.ask("k", "a", Leader)
	d.Sent()
	d.ask("k", "b", Follower)
	if f.Len() != 1 {
		t.Error("joined at epoch 0")
	}
}

func TestTooManyFlights(t *testing.T) {
	d := newDesk(t, Config{MaxFlights: 2})
	d.ask("a", "1", Leader)
	d.ask("aa", "2", Leader)
	if d.ask("aaa", "3", Alone) != nil {
		t.Error("alone in a flight")
	}
	d.ask("aa", "4", Follower)
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{Mode: 9}, {MaxAge: -1}, {MaxFlights: -1}, {MaxTries: -1}, {MaxTries: 256}} {
		if _, err := New[int](c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
