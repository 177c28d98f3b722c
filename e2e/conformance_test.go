package e2e

import (
	"fmt"
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

func TestCases(t *testing.T) {
	cases, err := conformance.RouterCases()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("backends=%d", n), func(t *testing.T) {
			r := startRouter(t, steadyBackends(t, n))
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					flush(t, r.addr)
					if err := conformance.Replay(r.addr, c); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

func TestConversationsMatchMemcached(t *testing.T) {
	conversations, err := conformance.Conversations()
	if err != nil {
		t.Fatal(err)
	}
	plain := steadyBackends(t, 1)[0]
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("backends=%d", n), func(t *testing.T) {
			r := startRouter(t, steadyBackends(t, n))
			for _, c := range conversations {
				t.Run(c.Name, func(t *testing.T) {
					want, got := transcript(t, plain, c), transcript(t, r.addr, c)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the router (+) differs from memcached (-):\n%s", diff)
					}
				})
			}
		})
	}
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
