package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/memcachedtest"
)

// TestDevServesGomemcache runs the command that a newcomer types first, which needs nothing installed, and wants of it
// what memcached gives the same client.
func TestDevServesGomemcache(t *testing.T) {
	r := startCommand(t, raceBinary, "dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--backends", "2")
	r.addr = r.waitLog(listeningTCP)
	got := gomemcacheChecks(t, r.addr)
	want := gomemcacheChecks(t, memcachedtest.Start(t).Addr())
	if diff := cmp.Diff(passes(want), passes(got)); diff != "" {
		t.Errorf("dev (+) differs from memcached (-):\n%s\n%v", diff, failures(got))
	}
}
