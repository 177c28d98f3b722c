package e2e

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/conformance"
	"cacherouter/internal/memcachedtest"
)

// steadyBackends starts n memcached whose replies depend on the requests alone.
func steadyBackends(tb testing.TB, n int) []string {
	tb.Helper()
	return memcachedtest.Addrs(memcachedtest.StartN(tb, n, memcachedtest.Steady...))
}

// release returns the version of the installed memcached.
func release(tb testing.TB) string {
	tb.Helper()
	version, err := conformance.Release(memcachedtest.Start(tb).Addr())
	if err != nil {
		tb.Fatal(err)
	}
	return version
}

// shapes are the ways to run a router that must make no difference to a client.
var shapes = []struct {
	name     string
	backends int
	unix     bool // clients come over a unix socket
	args     []string
}{
	{name: "one backend", backends: 1},
	{name: "three backends", backends: 3},
	{name: "io_uring engine", backends: 3, args: []string{"--engine", "uring"}},
	{name: "epoll engine", backends: 3, args: []string{"--engine", "epoll"}},
	{name: "portable engine", backends: 3, args: []string{"--engine", "portable"}},
	{name: "one loop", backends: 3, args: []string{"--loops", "1"}},
	{name: "unix socket", backends: 2, unix: true},
}

// eachShape runs a subtest against a router of every shape, over steady backends.
func eachShape(t *testing.T, run func(t *testing.T, addr string)) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			args, path := s.args, ""
			if s.unix {
				path = "unix:" + filepath.Join(t.TempDir(), "router.sock")
				args = append(args, "--listen", path)
			}
			r := startRouter(t, steadyBackends(t, s.backends), args...)
			if s.unix {
				r.waitLog(`msg=listening .*network=unix addr=(\S+)`)
				run(t, path)
			} else {
				run(t, r.addr)
			}
		})
	}
}

func TestCases(t *testing.T) {
	cases, err := conformance.RouterCases()
	if err != nil {
		t.Fatal(err)
	}
	behind := release(t)
	eachShape(t, func(t *testing.T, addr string) {
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				if !conformance.Holds(c.Variants, behind) {
					t.Skipf("the answer is that of memcached %s, here is %s", c.Variants, behind)
				}
				flush(t, addr)
				if err := conformance.Replay(addr, c); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

func TestConversationsMatchMemcached(t *testing.T) {
	conversations, err := conformance.Conversations()
	if err != nil {
		t.Fatal(err)
	}
	behind := release(t)
	eachShape(t, func(t *testing.T, addr string) {
		plain := steadyBackends(t, 1)[0]
		for _, c := range conversations {
			t.Run(c.Name, func(t *testing.T) {
				if !conformance.Holds(c.Variants, behind) {
					t.Skipf("a router answers this like memcached %s, here is %s", c.Variants, behind)
				}
				want, got := transcript(t, plain, c), transcript(t, addr, c)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the router (+) differs from memcached (-):\n%s", diff)
				}
			})
		}
	})
}

func transcript(t *testing.T, addr string, c conformance.Conversation) []string {
	t.Helper()
	flush(t, addr)
	lines, err := conformance.Transcript(addr, c)
	if err != nil {
		t.Errorf("%s: %v", addr, err)
	}
	return lines
}

func flush(t *testing.T, addr string) {
	t.Helper()
	if err := conformance.Flush(addr); err != nil {
		t.Fatal(err)
	}
}
