package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/router"

	"github.com/cespare/xxhash/v2"
)

// hot makes the hint of a router's hottest keys.
func hot(name string, keys ...hotkey.Hint) []byte {
	b := append([]byte{hintHot, byte(len(name))}, name...)
	return hotkey.AppendHints(b, keys)
}

// What no router says is counted and does nothing else.
func TestHintsThatMakeNoSense(t *testing.T) {
	h := &hints{started: time.Now()}
	good := hot("r", hotkey.Hint{Hash: 1, Rate: 5, Level: hotkey.Hot})
	bad := [][]byte{nil, {}, {0}, []byte("x12345678"), []byte("w1"), []byte("w123456789"), []byte("h"), {'h', 0}, {'h', 5, 'a'},
		{'h', 255}, append([]byte{'h', 255}, make([]byte, 254)...), {'h', 1, 'a'}, good[:len(good)-1], append(good[:len(good):len(good)], 0)}
	for i, b := range bad {
		h.heard(b)
		if n := h.bad.Load(); n != uint64(i+1) {
			t.Errorf("%q is understood", b)
			h.bad.Store(uint64(i + 1))
		}
	}
	for _, b := range [][]byte{good, written(nil), written([]uint64{1, 2}), hot(""), hot(strings.Repeat("n", 254)), hot(strings.Repeat("n", 255))} {
		h.heard(b) // there is no router yet
	}
	if n := h.bad.Load(); n != uint64(len(bad)) {
		t.Errorf("%d hints are not understood, want %d", n, len(bad))
	}
}

func FuzzHints(f *testing.F) {
	f.Add(written([]uint64{1}))
	f.Add(hot("router", hotkey.Hint{Hash: 7, Rate: 9, Level: hotkey.Severe}))
	f.Add(append([]byte{'h', 255}, make([]byte, 300)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &hints{started: time.Now()}
		h.heard(b)
		if h.bad.Load() > 1 {
			t.Error("one hint is bad twice")
		}
	})
}

// hinted is a router that keeps hot keys near, in front of one server.
type hinted struct {
	hints
	client net.Conn
	server net.Conn // past the router
}

func startHinted(t *testing.T) *hinted {
	t.Helper()
	addr := memcachedtest.Start(t).Addr()
	r, err := router.New(router.Config{Pools: []router.PoolConfig{{
		Table:    &router.Table{Servers: []router.Server{{Name: "a", Address: addr}}, Picker: only{}},
		Coalesce: &coalesce.Config{},
		HotKeys:  &hotkey.Config{MinRate: 1, EnterTicks: 1},
		Near:     &hotkey.NearConfig{Bytes: 1 << 16, TTL: time.Second},
	}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		r.StopListening()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := r.Serve(ln, router.Listen{}); err != nil {
		t.Fatal(err)
	}
	h := &hinted{}
	h.started = time.Now()
	h.pool.Store(r.Pools()[0])
	h.client, h.server = connect(t, ln.Addr().String()), connect(t, addr)
	return h
}

// only places every key on one server.
type only struct{}

func (only) Pick(dst []int, _ uint64, _ int) []int { return append(dst, 0) }

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// say sends a request and returns its reply, which has so many bytes.
func say(t *testing.T, c net.Conn, request string, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("%q is answered %q, %v", request, b, err)
	}
	return string(b)
}

func stored(value string) string { return fmt.Sprintf("VALUE k 0 1\r\n%s\r\nEND\r\n", value) }

// A hint that a key was written makes the router forget what it keeps of it.
func TestHintOfWriteForgets(t *testing.T) {
	h := startHinted(t)
	say(t, h.client, "set k 0 0 1\r\n1\r\n", len("STORED\r\n"))
	old, next := stored("1"), stored("2")
	get := func() string { return say(t, h.client, "get k\r\n", len(old)) }
	for deadline := time.Now().Add(30 * time.Second); ; {
		if time.Now().After(deadline) {
			t.Fatal("a value that was written past the router is never kept for a moment")
		}
		if get() != old { // it was kept from before and has expired
			t.Fatal("the value is lost")
		}
		say(t, h.server, "set k 0 0 1\r\n2\r\n", len("STORED\r\n"))
		if first, second := get(), get(); first == old && second == old { // from the near cache
			break
		}
		say(t, h.client, "set k 0 0 1\r\n1\r\n", len("STORED\r\n"))
	}
	h.heard(written([]uint64{xxhash.Sum64String("k"), 12345}))
	if got := get(); got != next {
		t.Errorf("after a hint the router says %q", got)
	}
	if h.bad.Load() != 0 {
		t.Error("the hint is not understood")
	}
}

// What other routers say of hot keys is joined with what this one knows.
func TestHotHintsJoin(t *testing.T) {
	h := startHinted(t)
	hash := xxhash.Sum64String("k")
	for _, name := range []string{"one", "two", strings.Repeat("n", 255)} {
		h.heard(hot(name, hotkey.Hint{Hash: hash, Rate: 1000, Level: hotkey.Hot}))
	}
	h.heard(hot("cold", hotkey.Hint{Hash: hash, Rate: 10}))
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		say(t, h.client, "get k\r\n", len("END\r\n"))
		report := h.hotKeys(5)
		if len(report.Keys) == 0 {
			continue
		}
		k := report.Keys[0]
		if want := (hotkey.Elsewhere{Routers: 3, Rate: 3010}); k.Key != "k" || k.Elsewhere != want {
			t.Errorf("of %q is known %+v elsewhere, want %+v", k.Key, k.Elsewhere, want)
		}
		return
	}
	t.Error("the key is never reported")
}
