package router_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/memproto"
	"cacherouter/router"
)

// startLeasing runs a router with leases in front of one server.
func startLeasing(t *testing.T, loops int, c coalesce.LeaseConfig, patience time.Duration) *running {
	t.Helper()
	return start(t, config{Config: router.Config{Loops: loops}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, Lease: &c, LeasePatience: patience}}, addresses(t, 1)...)
}

// waiting waits until so many gets are parked.
func (r *running) waiting(n int) {
	r.t.Helper()
	r.until(fmt.Sprint(n, " gets are parked"), func(s router.Snapshot) bool { return s.Leases.Waiting == n })
}

// fill asks for a key as a client does that has a database behind the cache: it stores what
// it does not find, after a while, and says whether it had to.
func fill(c *client, key, value string, after time.Duration) (had bool, err error) {
	if _, err := io.WriteString(c.nc, "get "+key+"\r\n"); err != nil {
		return false, err
	}
	line, err := c.r.ReadString('\n')
	switch {
	case err != nil:
		return false, err
	case line == "END\r\n":
		<-time.After(after)
		if _, err := io.WriteString(c.nc, set(key, value)); err != nil {
			return true, err
		}
		if line, err = c.r.ReadString('\n'); line != "STORED\r\n" {
			err = fmt.Errorf("set is answered %q: %w", line, err)
		}
		return true, err
	}
	rest := make([]byte, len(hit(key, value)+"END\r\n")-len(line))
	_, err = io.ReadFull(c.r, rest)
	if want := hit(key, value) + "END\r\n"; err == nil && line+string(rest) != want {
		err = fmt.Errorf("get is answered %q", line+string(rest))
	}
	return false, err
}

// A thousand clients that miss a key at once ask the database once.
func TestThousandMissesAtOnce(t *testing.T) {
	const origin = 50 * time.Millisecond
	r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: patience}, patience)
	var (
		queries atomic.Int64
		wg      sync.WaitGroup
		clients = crowd(t, r.addr, 1000)
		took    = make([]time.Duration, len(clients))
	)
	for i, c := range clients {
		wg.Go(func() {
			began := time.Now()
			had, err := fill(c, "k", "value", origin)
			if took[i] = time.Since(began); err != nil {
				t.Error(err)
			}
			if had {
				queries.Add(1)
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	t.Logf("with an origin that takes %v, half have an answer after %v, 99 %% after %v", origin, took[500], took[990])
	if n := queries.Load(); n != 1 {
		t.Errorf("the database was asked %d times", n)
	}
	if took[990] > origin+5*time.Second {
		t.Errorf("99 %% have an answer after %v", took[990])
	}
	if s := r.total().Leases; s.Granted != 1 || s.Used != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// A client that stores nothing is not waited for longer than its lease, and one that has
// left not even that long.
func TestHolderNeverStores(t *testing.T) {
	for name, c := range map[string]struct {
		lease time.Duration
		leave bool
	}{"it stays": {time.Second, false}, "it leaves": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			r := startLeasing(t, 1, coalesce.LeaseConfig{Duration: c.lease}, patience)
			clients := crowd(t, r.addr, 4)
			clients[0].ask("get k\r\n", "END\r\n")
			for i, c := range clients[1:] {
				c.send("get k\r\n")
				r.waiting(i + 1)
			}
			if c.leave {
				clients[0].nc.Close()
			}
			clients[1].want("END\r\n") // is the next
			clients[1].ask(set("k", "v"), "STORED\r\n")
			for _, c := range clients[2:] {
				c.want(hit("k", "v") + "END\r\n")
			}
			if s := r.total().Leases; s.Granted != 2 || s.Used != 1 || s.Expired+s.Gone != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// What ends the wait of a client, and what it finds then.
func TestWritesOfALeasedKey(t *testing.T) {
	for request, want := range map[string]string{
		set("k", "v"):                 hit("k", "v") + "END\r\n",
		"add k 0 0 1\r\nv\r\n":        hit("k", "v") + "END\r\n",
		"ms k 1\r\nv\r\n":             hit("k", "v") + "END\r\n",
		"set k 0 0 0\r\n\r\n":         hit("k", "") + "END\r\n",
		"ma k N0 J7\r\n":              hit("k", "7") + "END\r\n",
		"delete k\r\n":                "END\r\n",
		set("k", "v") + "get k j\r\n": hit("k", "v") + "END\r\n",
	} {
		r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: time.Hour}, patience)
		holder, other, waits := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
		holder.ask("get k\r\n", "END\r\n")
		holder.ask("get k\r\ngets k\r\n", "END\r\nEND\r\n") // its own are never parked
		waits.send("get k\r\n")
		r.waiting(1)
		other.ask("get k j\r\nincr k 1\r\ntouch k 0\r\nreplace k 0 0 1\r\nx\r\n", "END\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_STORED\r\n") // change nothing
		r.waiting(1)
		other.send(request)
		waits.want(want)
	}
}

// A get that waits is not answered by what its own client has written after it, be they sent
// together or one when the other waits already.
func TestParkedGetsAndTheirClientsWrites(t *testing.T) {
	for _, c := range []struct{ gets, write, replies string }{
		{"get k\r\n", set("k", "v") + "get k\r\n", "END\r\nSTORED\r\n" + hit("k", "v") + "END\r\n"},
		{"get k\r\nmg k v\r\n", set("k", "v"), "END\r\nEN\r\nSTORED\r\n"},
		{"mg k v O1\r\n", "ms k 1 O2\r\nv\r\n", "HD O2\r\nEN O1\r\n"}, // may come in any order
	} {
		r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: time.Hour}, patience)
		holder, waits := dial(t, r.addr), dial(t, r.addr)
		for _, together := range []bool{true, false} {
			holder.ask("delete k\r\nget k\r\n", "") // whose lease it is now
			holder.lines("END")
			if together {
				waits.send(c.gets + c.write)
			} else {
				waits.send(c.gets)
				r.waiting(strings.Count(c.gets, "\n"))
				waits.send(c.write)
			}
			var got []string
			for range strings.Count(c.replies, "\n") {
				got = append(got, waits.line()+"\r\n")
			}
			if strings.Contains(c.gets, "O1") {
				slices.Sort(got)
				slices.Reverse(got)
			}
			if replies := strings.Join(got, ""); replies != c.replies {
				t.Errorf("%q and then %q are answered %q, together %v", c.gets, c.write, replies, together)
			}
		}
	}
}

// A get that waits holds its place in a classic pipeline, and nothing up where replies can
// be told apart.
func TestParkedGetsAndPipelines(t *testing.T) {
	r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: time.Hour}, patience)
	holder, classic, meta, binary := dial(t, r.addr), dial(t, r.addr), dial(t, r.addr), dial(t, r.addr)
	holder.ask(set("other", "o"), "STORED\r\n")
	holder.ask("get k\r\n", "END\r\n")
	classic.send("get k\r\nget other\r\nmg k v\r\nversion\r\n")
	r.waiting(2)
	meta.ask("mg k v f O1\r\nmg other v O2\r\nmg k v q O3\r\nmg other v\r\n", "VA 1 O2\r\no\r\nVA 1\r\no\r\n")
	r.waiting(4)
	meta.ask("delete none\r\nmg other v q O4\r\n", "NOT_FOUND\r\nVA 1 O4\r\no\r\n")
	meta.send("mn\r\nmg other v O5\r\n")
	binary.send(packet(memproto.OpGet, 0, "k", "") + packet(memproto.OpGetKQ, 0, "k", "") + packet(memproto.OpVersion, 0, "", ""))
	r.waiting(6)
	version := make([]byte, 24+len("1.6.18"))
	if _, err := io.ReadFull(binary.r, version); err != nil || !strings.HasSuffix(string(version), "1.6.18") {
		t.Fatalf("the version is %q, %v", version, err)
	}
	binary.send(packet(memproto.OpNoop, 0, "", ""))
	holder.ask(set("k", "v"), "STORED\r\n")
	classic.want(hit("k", "v") + "END\r\n" + hit("other", "o") + "END\r\nVA 1\r\nv\r\nVERSION 1.6.18\r\n")
	meta.want("VA 1 f0 O1\r\nv\r\nVA 1 O3\r\nv\r\nMN\r\nVA 1 O5\r\no\r\n")
	got := form{binary: true}.answer(binary)
	if strings.Count(got, "v\"") != 2 || !strings.Contains(got, "kv\"") {
		t.Errorf("binary gets are answered %s", got)
	}
	classic.ask("get k\r\n", hit("k", "v")+"END\r\n")
}

// A client waits for all its gets together no longer than its patience, however many hold
// the lease one after the other.
func TestPatience(t *testing.T) {
	const limit = 500 * time.Millisecond
	r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: limit / 5}, limit)
	clients := crowd(t, r.addr, 40) // would take 8 limits
	began := time.Now()
	for _, c := range clients {
		c.send("get k\r\nget k\r\nget j\r\n")
	}
	for i, c := range clients {
		c.want("END\r\nEND\r\nEND\r\n")
		if d := time.Since(began); d > 4*limit {
			t.Fatalf("client %d had to wait for %v", i, d)
		}
	}
	if s := r.total().Leases; s.Granted < 3 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// After some leases that nobody used, misses are shown at once.
func TestNothingInTheDatabase(t *testing.T) {
	r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: 50 * time.Millisecond, Fruitless: 2, Pause: patience}, patience)
	clients := crowd(t, r.addr, 20)
	asked := 0
	r.until("misses are shown though others hold no lease", func(s router.Snapshot) bool {
		clients[asked%len(clients)].ask("get k\r\n", "END\r\n")
		asked++
		return s.Leases.Passed > 0
	})
	if s := r.total().Leases; s.Expired < 2 {
		t.Errorf("%+v", s)
	}
	before := r.total().Leases
	for _, c := range clients {
		c.ask("get k\r\nmg k v O1\r\n", "END\r\nEN O1\r\n")
	}
	after := r.total().Leases
	if after.Granted != before.Granted || after.Parked != before.Parked {
		t.Errorf("%+v became %+v", before, after)
	}
	clients[0].ask(set("k", "v"), "STORED\r\n")
	clients[1].ask("get k\r\n", hit("k", "v")+"END\r\n")
}

// Clients that leave while they are parked, in a list or beside it.
func TestParkedClientsLeave(t *testing.T) {
	r := startLeasing(t, 2, coalesce.LeaseConfig{Duration: time.Hour}, patience)
	holder := dial(t, r.addr)
	holder.ask("get k\r\n", "END\r\n")
	clients := crowd(t, r.addr, 20)
	for i, c := range clients {
		c.send([]string{"get k\r\nget j\r\n", "mg k v O1\r\nmg k v O2 q\r\nmg k v\r\n"}[i%2])
	}
	r.waiting(49) // one get of j has its lease
	for i, c := range clients {
		if i%4 > 1 {
			c.nc.SetLinger(0)
			c.nc.Close()
		}
	}
	r.until("half have left", func(s router.Snapshot) bool { return s.Sessions == 11 })
	holder.ask(set("j", "w")+set("k", "v"), "STORED\r\nSTORED\r\n")
	clients[1].want("VA 1")
	for i, c := range clients {
		if i%4 == 0 {
			c.lines("END")
			c.lines("END")
		}
	}
	requests, replies := pipeline(20)
	clients[0].ask(requests, replies)
}
