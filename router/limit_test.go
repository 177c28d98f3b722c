package router_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/memproto"
	"cacherouter/router"
)

const tooMany = "SERVER_ERROR key has too many requests\r\n"

// A hot key that gets more requests than it may is answered with an error, whatever it is
// asked with, and no other key is.
func TestLimitOfAHotKey(t *testing.T) {
	c := config{Config: router.Config{Loops: 2}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, HotKeys: soon(), Limit: &hotkey.LimitConfig{Rate: 0.01, Burst: 1}, MaxValue: 1000}}
	r := start(t, c, addresses(t, 2)...)
	clients := crowd(t, r.addr, 2)
	clients[0].ask(set("k", "v")+set("cool", "c"), "STORED\r\nSTORED\r\n")
	for limited := false; !limited; { // hot, and the one it may have has been
		clients[0].send(strings.Repeat("get k\r\n", 20))
		for range 20 {
			line, err := clients[0].r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if limited = line == tooMany; !limited {
				clients[0].want("v\r\nEND\r\n")
			}
		}
	}
	before := r.total()
	for _, c := range clients {
		for range 5 {
			c.ask("get k\r\ngets k\r\nmg k v\r\nmg k v q\r\ntouch k 0\r\n", strings.Repeat(tooMany, 5))
			c.ask(set("k", "w")+"delete k noreply\r\nget cool\r\nget cool none\r\n", tooMany+hit("cool", "c")+"END\r\n"+hit("cool", "c")+"END\r\n")
			c.ask("get cool k none\r\nget k k\r\ngat 0 cool k\r\nversion\r\n", strings.Repeat(tooMany, 3)+"VERSION 1.6.18\r\n")
		}
	}
	if s := r.total(); s.Limited-before.Limited != 100 {
		t.Errorf("%d requests were limited, want 100", s.Limited-before.Limited)
	}
	clients[0].ask(set("k", strings.Repeat("x", 2000)), "SERVER_ERROR object too large for cache\r\n") // the old value goes
	b := dial(t, r.addr)
	b.send(packet(memproto.OpGet, 0, "k", "") + packet(memproto.OpNoop, 0, "", ""))
	if got := (form{binary: true}).answer(b); !strings.Contains(got, "key has too many requests") {
		t.Errorf("a binary get is answered %s", got)
	}
	r.until("the key is cool, and may be asked for", func(router.Snapshot) bool { return r.levelOf("k") == hotkey.Cold })
	r.until("no limit is left", func(router.Snapshot) bool {
		clients[1].send("get k\r\n")
		line, err := clients[1].r.ReadString('\n')
		return err != nil || line == "END\r\n"
	})
}

// loglines collects what is logged.
type loglines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *loglines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns the lines that have all these words.
func (l *loglines) with(words ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// A key that half of all requests ask for is hot within two seconds, is reported with what
// is asked of it, and is forgotten after it has cooled; each is one line in the log.
func TestHotKeyComesAndGoes(t *testing.T) {
	log := new(loglines)
	hot := &hotkey.Config{MinRate: 5, LeaveAfter: time.Second, Hot: 0.5, Severe: 1e6}
	r := start(t, config{Config: router.Config{Loops: 2, Log: slog.New(slog.NewTextHandler(log, nil))}, Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, HotKeys: hot}}, addresses(t, 2)...)
	clients := crowd(t, r.addr, 2)
	began := time.Now()
	var warm time.Duration
	for i := 0; time.Since(began) < 3*time.Second; i++ {
		c := clients[i%2]
		c.send("get hot:key\r\nget hot:key\r\n" + set("hot:key", "v") + "get cold" + strings.Repeat("x", i%40) + "\r\n")
		c.lines("STORED")
		c.lines("END")
		if warm == 0 && r.levelOf("hot:key") == hotkey.Hot {
			warm = time.Since(began)
		}
		<-time.After(3 * time.Millisecond)
	}
	k := r.HotKeys(3).Keys[0]
	if k.Key != "hot:key" || k.Share < 0.6 || k.Share > 0.8 || k.Writes < k.Rate/4 || k.Reads < k.Rate/2 || k.Rate <= 0 {
		t.Errorf("reported is %+v", k)
	}
	if p := r.HotKeys(3).Prefixes[0]; p.Prefix != "hot:" || p.Keys != 1 {
		t.Errorf("the first prefix is %+v", p)
	}
	if hints := r.HotHints(); len(hints) == 0 {
		t.Error("nothing can be told to others")
	}
	idle := time.Now()
	r.until("the key is cold", func(router.Snapshot) bool { return r.levelOf("hot:key") == hotkey.Cold })
	t.Logf("hot after %v, cold after %v", warm, time.Since(idle))
	if warm == 0 || warm > 2*time.Second || time.Since(idle) > 10*time.Second {
		t.Errorf("hot after %v, cold after %v", warm, time.Since(idle))
	}
	for _, to := range []string{"from=cold to=hot", "from=hot to=cold"} {
		r.until("it is logged", func(router.Snapshot) bool { return len(log.with("key heat", "hot:key", to)) > 0 })
		if lines := log.with("key heat", "hot:key", to); len(lines) != 1 {
			t.Errorf("logged is %q", lines)
		}
	}
	if lines := log.with("key heat", "cold"+"x"); len(lines) > 0 {
		t.Errorf("logged is %q", lines)
	}
}
