package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/membership/journal"
	"github.com/bradfitz/gomemcache/memcache"
)

func TestRealMemcached(t *testing.T) {
	s := memcachedtest.Start(t)
	ctx := t.Context()
	var tcp TCP
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(tcp.Probe(ctx, s.Addr()))
	first, err := tcp.Identify(ctx, s.Addr())
	check(err)
	if first.PID != s.PID() || time.Since(first.Started) > time.Minute {
		t.Errorf("%+v, want process %d", first, s.PID())
	}
	client := memcache.New(s.Addr())
	defer client.Close()
	var entries []journal.Entry
	for i := range 600 {
		key := fmt.Sprint("key", i)
		check(client.Set(&memcache.Item{Key: key, Value: []byte("v")}))
		if i != 5 {
			entries = append(entries, journal.Entry{Key: []byte(key)})
		}
	}
	entries = append(entries, journal.Entry{Key: []byte("not there")}, journal.Entry{Key: []byte("nor-there")})
	check(tcp.Delete(ctx, s.Addr(), entries))
	if n := s.Stat("curr_items"); n != 1 {
		t.Errorf("%d items left, want 1", n)
	}
	check(client.Set(&memcache.Item{Key: "late", Value: []byte("v")}))
	check(tcp.Flush(ctx, s.Addr()))
	for _, key := range []string{"key5", "late"} {
		if _, err := client.Get(key); !errors.Is(err, memcache.ErrCacheMiss) {
			t.Errorf("%s after a flush: %v", key, err)
		}
	}
	s.Restart()
	second, err := tcp.Identify(ctx, s.Addr())
	check(err)
	if !first.Replaced(second) {
		t.Errorf("a new process is not told from the old one: %+v, %+v", first, second)
	}
}

func TestFlushRefused(t *testing.T) {
	s := memcachedtest.Start(t, "-F")
	if err := (TCP{}).Flush(t.Context(), s.Addr()); !errors.Is(err, ErrAnswer) {
		t.Errorf("%v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	s := memcachedtest.StartUnix(t)
	if err := (TCP{}).Probe(t.Context(), s.Addr()); err != nil {
		t.Error(err)
	}
}

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("me:secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := memcachedtest.Start(t, "-Y", file).Addr()
	if err := (TCP{User: "me", Password: "secret"}).Probe(t.Context(), addr); err != nil {
		t.Error(err)
	}
	if err := (TCP{User: "me", Password: "wrong"}).Probe(t.Context(), addr); !errors.Is(err, ErrAnswer) {
		t.Errorf("a wrong password: %v", err)
	}
	if err := (TCP{}).Probe(t.Context(), addr); !errors.Is(err, ErrAnswer) {
		t.Errorf("no password: %v", err)
	}
}

// TestStrangers: what does not answer as memcached is not taken for one, in bounded time.
func TestStrangers(t *testing.T) {
	s := memcachedtest.Start(t)
	p := memcachedtest.Proxy(t, s.Addr())
	for _, fault := range []memcachedtest.Fault{memcachedtest.Garbage, memcachedtest.Reset, memcachedtest.Truncate, memcachedtest.Refuse, memcachedtest.Stall} {
		p.Set(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		began := time.Now()
		err := (TCP{}).Probe(ctx, p.Addr())
		cancel()
		if err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("fault %d: %v after %v", fault, err, time.Since(began))
		}
	}
	refused := memcachedtest.Reserve(t)
	if err := (TCP{}).Probe(t.Context(), refused); err == nil {
		t.Error("nobody listens, and no error")
	}
}

// TestEndless: a server that never ends its statistics is left.
func TestEndless(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		for err == nil {
			_, err = c.Write([]byte("STAT x 1\r\n"))
		}
	}()
	if _, err := (TCP{}).Identify(t.Context(), l.Addr().String()); !errors.Is(err, ErrAnswer) {
		t.Errorf("%v", err)
	}
}
