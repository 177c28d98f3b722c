package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inbox is a handler that keeps what it gets.
type inbox struct {
	state string

	mu    sync.Mutex
	got   map[string]int // guarded by mu
	hints int            // guarded by mu
}

func (b *inbox) State() []byte { return []byte(b.state) }

func (b *inbox) Merge(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got[string(p)]++
}

func (b *inbox) Hint([]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hints++
}

func (b *inbox) Announce(p []byte) { b.Merge(append([]byte("announced "), p...)) }

func (b *inbox) has(s string) func() bool {
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.got[s] > 0
	}
}

// logs is a log that can be searched.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) has(s string) func() bool {
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.buf.String(), s)
	}
}

// node is a router under test.
type node struct {
	*Gossip
	*inbox
	log *logs
}

// start starts a router; those of one test each have an address of 127.0.0.0/8.
func start(t *testing.T, name string, c Config) *node {
	t.Helper()
	n := &node{inbox: &inbox{state: "state of " + name, got: map[string]int{}}, log: &logs{}}
	c.Name, c.fast = name, true
	if c.Bind == "" {
		c.Bind = "127.0.0." + strings.TrimLeft(name, "r") + ":0"
	}
	if c.Rejoin == 0 {
		c.Rejoin = 200 * time.Millisecond
	}
	c.Log = slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if n.Gossip, err = Start(c, n.inbox); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
		if t.Failed() {
			n.log.mu.Lock()
			defer n.log.mu.Unlock()
			t.Logf("log of %s:\n%s", name, n.log.buf.String())
		}
	})
	return n
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func together(nodes ...*node) func() bool {
	return func() bool {
		for _, n := range nodes {
			if len(n.Members()) != len(nodes) {
				return false
			}
		}
		return true
	}
}

// fleet starts n routers that know of the first.
func fleet(t *testing.T, n int, c Config) []*node {
	t.Helper()
	nodes := []*node{start(t, "r1", c)}
	c.Join = []string{nodes[0].Address()}
	for i := 2; i <= n; i++ {
		nodes = append(nodes, start(t, fmt.Sprint("r", i), c))
	}
	eventually(t, "all together", together(nodes...))
	return nodes
}

func TestMessages(t *testing.T) {
	n := fleet(t, 3, Config{Cluster: "a"})
	eventually(t, "the state of one that joined", n[0].has("state of r3"))
	eventually(t, "the state of the one that was there", n[1].has("state of r1"))
	long := strings.Repeat("x", 100_000)
	for _, m := range []string{"short", long} {
		for _, to := range []*node{n[0], n[2]} {
			eventually(t, "a message", func() bool { n[1].Send([]byte(m)); return to.has(m)() })
		}
	}
	if n[1].has("short")() {
		t.Error("a router got its own message")
	}
	eventually(t, "a hint", func() bool {
		n[0].SendHint([]byte("h"))
		n[2].inbox.mu.Lock()
		defer n[2].inbox.mu.Unlock()
		return n[2].hints > 0
	})
	eventually(t, "an announcement", func() bool {
		n[0].SendAnnounce([]byte("s"))
		return n[2].has("announced s")()
	})
	if st := n[1].Stats(); st.Sent < 4 || st.BytesSent < 200_000 {
		t.Errorf("%+v", st)
	}
	names := func(ms []Member) (all []string) {
		for _, m := range ms {
			all = append(all, m.Name)
		}
		return all
	}
	if got := names(n[0].Members()); !slices.Equal(got, []string{"r1", "r2", "r3"}) {
		t.Errorf("members %v", got)
	}
}

// TestJoined: when it is closed, the others' states are there.
func TestJoined(t *testing.T) {
	first := start(t, "r1", Config{})
	<-first.Joined()
	second := start(t, "r2", Config{Join: []string{first.Address()}})
	<-second.Joined()
	if !second.has("state of r1")() {
		t.Error("joined, and the other's state is missing")
	}
}

// TestOneNameTwice is said aloud.
func TestOneNameTwice(t *testing.T) {
	first := start(t, "r1", Config{})
	third := start(t, "r3", Config{Join: []string{first.Address()}})
	start(t, "r1", Config{Bind: "127.0.0.2:0", Join: []string{third.Address()}})
	eventually(t, "the conflict is logged", third.log.has("two routers have one name"))
}

// TestStartsAlone, says so, and finds the others when they come.
func TestStartsAlone(t *testing.T) {
	late := start(t, "r9", Config{})
	addr := late.Address()
	late.crash()
	n := start(t, "r1", Config{Join: []string{addr, "no.such.name.invalid:1"}})
	eventually(t, "the router says that it is alone", n.log.has("starting alone"))
	again := start(t, "r9", Config{Bind: addr})
	eventually(t, "both together", together(n, again))
}

// TestRejoin: routers that have given each other up, and forgotten, meet again, though
// nobody has the other in its list.
func TestRejoin(t *testing.T) {
	n := fleet(t, 2, Config{})
	addr := n[1].Address()
	n[1].crash()
	eventually(t, "the crashed router is given up", together(n[0]))
	eventually(t, "it is logged", n[0].log.has("router gone"))
	again := start(t, "r2", Config{Bind: addr})
	eventually(t, "both together", together(n[0], again))
}

// TestCrashIsNoSilence: that a router has crashed is noticed, and that it is back.
func TestCrashIsNoSilence(t *testing.T) {
	n := fleet(t, 3, Config{})
	addr := n[1].Address()
	n[1].crash()
	eventually(t, "the crash is noticed by all", func() bool {
		return slices.Equal(n[0].Refusing(), []string{"r2"}) && slices.Equal(n[2].Refusing(), []string{"r2"})
	})
	back := start(t, "r2", Config{Bind: addr, Join: []string{n[0].Address()}})
	eventually(t, "it is back", together(n[0], back, n[2]))
	if got := n[0].Refusing(); len(got) > 0 {
		t.Errorf("%v refuse, and are there", got)
	}
}

// TestOneAnswerInBetween: refusals count in a row only.
func TestOneAnswerInBetween(t *testing.T) {
	g := start(t, "r1", Config{})
	other := start(t, "r2", Config{})
	nobody := start(t, "r3", Config{})
	refuses := nobody.Address()
	nobody.crash()
	f := func(address string, times int, want bool) {
		t.Helper()
		g.Gossip.mu.Lock()
		g.lost["x"].address = address
		g.Gossip.mu.Unlock()
		for range times {
			g.knockAt(t.Context(), "x", address)
		}
		if got := len(g.Refusing()) > 0; got != want {
			t.Errorf("after %d more knocks at %s: refuses %v, want %v", times, address, got, want)
		}
	}
	g.cancel() // its own knocking
	g.done.Wait()
	g.lose("x", refuses)
	f(refuses, enoughRefusals-1, false)
	f(other.Address(), 1, false)
	f(refuses, enoughRefusals-1, false)
	f(refuses, 1, true)
	f("192.0.2.1:nonsense", 1, false)
}

// TestJitter: routers that lost each other at one moment do not all call at another one.
func TestJitter(t *testing.T) {
	const n = 1000
	var tenths [10]int
	for range n {
		d := jitter(30 * time.Second)
		if d < 15*time.Second || d >= 45*time.Second {
			t.Fatalf("30 s became %v, want half of it more or less", d)
		}
		tenths[(d-15*time.Second)/(3*time.Second)]++
	}
	if least, most := slices.Min(tenths[:]), slices.Max(tenths[:]); least < n/20 || most > n/5 {
		t.Errorf("of %d calls %v in each tenth of the time, want about as many in each", n, tenths)
	}
}

func TestGoodBye(t *testing.T) {
	n := fleet(t, 3, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n[2].Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n[2].Close(ctx); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	eventually(t, "the two that are left", together(n[0], n[1]))
}

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// TestKeys: with a key, who has another or none is refused, both sides go on, and whoever
// has the key comes in.
func TestKeys(t *testing.T) {
	n := fleet(t, 2, Config{Keys: [][]byte{key(1)}})
	join := []string{n[0].Address()}
	wrong := start(t, "r3", Config{Keys: [][]byte{key(2)}, Join: join})
	none := start(t, "r4", Config{Join: join})
	for _, intruder := range []*node{wrong, none} {
		eventually(t, "the intruder stays alone", intruder.log.has("starting alone"))
		if len(intruder.Members()) != 1 || intruder.has("state of r1")() {
			t.Error("a router without the key came in")
		}
	}
	eventually(t, "the refusal is logged", n[0].log.has("another gossip key"))
	if !together(n[0], n[1])() {
		t.Error("the two with the key are disturbed")
	}
	if n[0].has("state of r3")() || n[0].has("state of r4")() {
		t.Error("a message of a router without the key was taken in")
	}
}

// TestRotation changes the key of running routers without losing a member.
func TestRotation(t *testing.T) {
	n := fleet(t, 2, Config{Keys: [][]byte{key(1)}})
	for _, keys := range [][][]byte{{key(1), key(2)}, {key(2), key(1)}, {key(2)}} {
		for _, r := range n {
			if err := r.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
			if !together(n...)() {
				t.Fatal("a member was lost")
			}
		}
	}
	join := []string{n[0].Address()}
	newcomer := start(t, "r3", Config{Keys: [][]byte{key(2)}, Join: join})
	eventually(t, "a router with the new key comes in", together(n[0], n[1], newcomer))
	old := start(t, "r4", Config{Keys: [][]byte{key(1)}, Join: join})
	eventually(t, "one with the old key does not", old.log.has("starting alone"))
	if err := n[0].SetKeys([][]byte{{1, 2, 3}}); err == nil {
		t.Error("a key of 3 bytes was taken")
	}
	if err := n[0].SetKeys(nil); err == nil {
		t.Error("encryption was turned off")
	}
}

// TestClusters: routers of another fleet are not let in.
func TestClusters(t *testing.T) {
	a := start(t, "r1", Config{Cluster: "a"})
	b := start(t, "r2", Config{Cluster: "b", Join: []string{a.Address()}})
	eventually(t, "the stranger stays alone", b.log.has("starting alone"))
	if len(a.Members()) != 1 {
		t.Errorf("members %v", a.Members())
	}
}

func TestBadConfig(t *testing.T) {
	f := func(c Config) {
		t.Helper()
		c.Name = "r1"
		if _, err := Start(c, &inbox{}); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	f(Config{Bind: "nonsense"})
	f(Config{Bind: "127.0.0.1:70000"})
	f(Config{Bind: "127.0.0.1:0", Advertise: "x"})
	f(Config{Bind: "127.0.0.1:0", Keys: [][]byte{{1}}})
}

// TestManyMessages: what comes faster than it is taken in is dropped and counted, and
// never holds up the network.
func TestManyMessages(t *testing.T) {
	g := &Gossip{in: make(chan packet, maxWaiting), handler: &inbox{got: map[string]int{}}}
	for range maxWaiting + 10 {
		g.enqueue(kindState, []byte("x"))
	}
	if g.stats.Dropped != 10 {
		t.Errorf("%d dropped, want 10", g.stats.Dropped)
	}
}
