package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/client"
	"cacherouter/internal/memcachedtest"
	"cacherouter/rendezvous"
	"cacherouter/router"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waiting for what must come.
const patience = time.Minute

// start runs a router of two loops before servers until the test ends, or stop is called.
func start(t testing.TB, addrs ...string) (r *router.Router, stop func()) {
	t.Helper()
	names, weights := make([]string, len(addrs)), make([]int, len(addrs))
	table := &router.Table{}
	for i, a := range addrs {
		names[i], weights[i] = fmt.Sprintf("s%d", i), 1
		table.Servers = append(table.Servers, router.Server{Name: names[i], Address: a})
	}
	placed, err := rendezvous.New(names, weights)
	if err != nil {
		t.Fatal(err)
	}
	table.Picker = placed
	r, err = router.New(router.Config{
		Loops: 2, Log: slog.New(slog.DiscardHandler),
		Pools: []router.PoolConfig{{Table: table, Timeout: patience, FlushAll: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		r.StopListening()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the router ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return r, stop
}

// fleet is a client, and a memcached client that reaches the same servers through a socket of the
// same router.
func fleet(t testing.TB) (ours *client.Client, theirs *memcache.Client) {
	t.Helper()
	r, _ := start(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3, memcachedtest.Steady...))...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Serve(ln, router.Listen{}); err != nil {
		t.Fatal(err)
	}
	ours, theirs = client.New(r, client.Config{}), memcache.New(ln.Addr().String())
	theirs.Timeout = patience
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

func want(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What this client stores others read, and the other way round.
func TestTogetherWithOthers(t *testing.T) {
	ours, theirs := fleet(t)
	for i := range 100 {
		key, value := fmt.Sprintf("key%d", i), strings.Repeat("x\r\n", i*i)
		if err := ours.Set(ctx(t), client.Item{Key: key, Value: []byte(value), Flags: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		it, err := theirs.Get(key)
		if err != nil || string(it.Value) != value || it.Flags != uint32(i) {
			t.Fatalf("%s: others read %d bytes, flags %d, %v", key, len(it.Value), it.Flags, err)
		}
		if err := theirs.Set(&memcache.Item{Key: key, Value: []byte(value + "!"), Flags: 7}); err != nil {
			t.Fatal(err)
		}
		mine, err := ours.Get(ctx(t), key)
		if err != nil || string(mine.Value) != value+"!" || mine.Flags != 7 || mine.Key != key {
			t.Fatalf("%s: read %d bytes, flags %d, %v", key, len(mine.Value), mine.Flags, err)
		}
	}
}

func TestOperations(t *testing.T) {
	c, _ := fleet(t)
	it := client.Item{Key: "k", Value: []byte("1")}
	want(t, "get of nothing", second(c.Get(ctx(t), "k")), client.ErrMiss)
	want(t, "replace of nothing", c.Replace(ctx(t), it), client.ErrNotStored)
	want(t, "delete of nothing", c.Delete(ctx(t), "k"), client.ErrMiss)
	want(t, "touch of nothing", c.Touch(ctx(t), "k", time.Minute), client.ErrMiss)
	want(t, "cas of nothing", c.CompareAndSwap(ctx(t), it), client.ErrMiss)
	want(t, "count of nothing", second(c.Add64(ctx(t), "k", 1)), client.ErrMiss)
	want(t, "add", c.Add(ctx(t), it), nil)
	want(t, "add again", c.Add(ctx(t), it), client.ErrNotStored)
	want(t, "replace", c.Replace(ctx(t), client.Item{Key: "k", Value: []byte("5")}), nil)
	for _, step := range []struct {
		delta int64
		sum   uint64
	}{{3, 8}, {-2, 6}, {-100, 0}, {1 << 62, 1 << 62}} {
		if got, err := c.Add64(ctx(t), "k", step.delta); err != nil || got != step.sum {
			t.Errorf("adding %d gives %d, %v", step.delta, got, err)
		}
	}
	read, err := c.Get(ctx(t), "k")
	want(t, "get", err, nil)
	read.Value = []byte("mine")
	want(t, "cas", c.CompareAndSwap(ctx(t), read), nil)
	want(t, "cas of what has changed", c.CompareAndSwap(ctx(t), read), client.ErrConflict)
	want(t, "touch", c.Touch(ctx(t), "k", time.Hour), nil)
	want(t, "delete", c.Delete(ctx(t), "k"), nil)
	want(t, "get of what was deleted", second(c.Get(ctx(t), "k")), client.ErrMiss)
	want(t, "empty value", c.Set(ctx(t), client.Item{Key: "e"}), nil)
	empty, err := c.Get(ctx(t), "e")
	if err != nil || len(empty.Value) != 0 {
		t.Errorf("an empty value is %q, %v", empty.Value, err)
	}
}

func second[T any](_ T, err error) error { return err }

// An item with a time to live that is over is gone, and one of more than 30 days is not.
func TestTTL(t *testing.T) {
	c, _ := fleet(t)
	want(t, "set", c.Set(ctx(t), client.Item{Key: "short", Value: []byte("v"), TTL: time.Millisecond}), nil)
	want(t, "set", c.Set(ctx(t), client.Item{Key: "long", Value: []byte("v"), TTL: 40 * 24 * time.Hour}), nil)
	for deadline := time.Now().Add(patience); ; {
		_, err := c.Get(ctx(t), "short")
		if errors.Is(err, client.ErrMiss) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the short one never ends")
		}
	}
	want(t, "get", second(c.Get(ctx(t), "long")), nil)
}

// Keys may have any bytes.
func TestKeys(t *testing.T) {
	c, _ := fleet(t)
	keys := []string{"a b", "\x00", "ключ", "new\r\nline", strings.Repeat("k", 250), strings.Repeat(" ", 186), "tab\tbed"}
	items := map[string]client.Item{}
	for _, k := range keys {
		it := client.Item{Key: k, Value: []byte("of " + k)}
		want(t, k, c.Set(ctx(t), it), nil)
		items[k] = it
	}
	got, err := c.GetMany(ctx(t), append(keys, "missing")...)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b client.Item) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
	if d := cmp.Diff(items, got, same); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", strings.Repeat("k", 251), strings.Repeat(" ", 187)} {
		want(t, "bad key", second(c.Get(ctx(t), bad)), client.ErrKey)
	}
	some, err := c.GetMany(ctx(t), "a b", "")
	if len(some) != 1 || !errors.Is(err, client.ErrKey) {
		t.Errorf("beside a bad key: %v, %v", some, err)
	}
}

// Many goroutines count, and none of it is lost.
func TestMany(t *testing.T) {
	c, _ := fleet(t)
	const workers, rounds = 16, 60
	want(t, "set", c.Set(ctx(t), client.Item{Key: "n", Value: []byte("0")}), nil)
	var busy sync.WaitGroup
	for i := range workers {
		busy.Go(func() {
			for n := range rounds {
				if _, err := c.Add64(ctx(t), "n", 1); err != nil {
					t.Error(err)
					return
				}
				key, value := fmt.Sprintf("%d", i), fmt.Sprintf("%d", n)
				if err := c.Set(ctx(t), client.Item{Key: key, Value: []byte(value)}); err != nil {
					t.Error(err)
				}
				if it, err := c.Get(ctx(t), key); err != nil || string(it.Value) != value {
					t.Errorf("read %q of %q, %v", it.Value, value, err)
				}
			}
		})
	}
	busy.Wait()
	if it, err := c.Get(ctx(t), "n"); err != nil || string(it.Value) != fmt.Sprint(workers*rounds) {
		t.Errorf("counted %s, %v", it.Value, err)
	}
}

// Who gives up does not hold up those behind, nor take their replies.
func TestGivingUp(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	proxy := memcachedtest.Proxy(t, server.Addr())
	r, _ := start(t, proxy.Addr())
	c := client.New(r, client.Config{InFlight: 1})
	defer c.Close()
	want(t, "set", c.Set(ctx(t), client.Item{Key: "a", Value: []byte("v")}), nil)
	proxy.Set(memcachedtest.Stall)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	want(t, "get of a server that stalls", second(c.Get(short, "a")), context.DeadlineExceeded)
	want(t, "get without room", second(c.Get(short, "a")), context.DeadlineExceeded)
	proxy.Set(memcachedtest.Pass)
	if it, err := c.Get(ctx(t), "a"); err != nil || string(it.Value) != "v" {
		t.Errorf("afterwards: %q, %v", it.Value, err)
	}
	want(t, "get of another key", second(c.Get(ctx(t), "b")), client.ErrMiss)
}

// A server that cannot be reached is an error that says so.
func TestServerGone(t *testing.T) {
	r, _ := start(t, memcachedtest.Reserve(t))
	c := client.New(r, client.Config{})
	defer c.Close()
	var failed client.ServerError
	if _, err := c.Get(ctx(t), "k"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// After Close, and after the end of the router, all fail, at once.
func TestClosed(t *testing.T) {
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	r, stop := start(t, server.Addr())
	c, other := client.New(r, client.Config{}), client.New(r, client.Config{})
	want(t, "set", c.Set(ctx(t), client.Item{Key: "k", Value: []byte("v")}), nil)
	c.Close()
	c.Close()
	want(t, "get after close", second(c.Get(ctx(t), "k")), client.ErrClosed)
	want(t, "get of another client", second(other.Get(ctx(t), "k")), nil)
	stop()
	want(t, "get after the end", second(other.Get(ctx(t), "k")), client.ErrClosed)
	late := client.New(r, client.Config{})
	want(t, "get of a late client", second(late.Get(ctx(t), "k")), client.ErrClosed)
}

func BenchmarkGet(b *testing.B) {
	ours, theirs := fleet(b)
	if err := ours.Set(ctx(b), client.Item{Key: "k", Value: []byte(strings.Repeat("v", 100))}); err != nil {
		b.Fatal(err)
	}
	run := func(name string, get func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(25)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := get(); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
	run("in the process", func() error { _, err := ours.Get(context.Background(), "k"); return err })
	run("gomemcache through a socket", func() error { _, err := theirs.Get("k"); return err })
}
