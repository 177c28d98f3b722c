package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

func TestParse(t *testing.T) {
	f := func(in string, want Server) {
		t.Helper()
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	f("10.0.0.1:11211", Server{"10.0.0.1:11211", "10.0.0.1:11211", 1})
	f("a=10.0.0.1:11211@3", Server{"a", "10.0.0.1:11211", 3})
	f("[::1]:11211@2", Server{"[::1]:11211", "[::1]:11211", 2})
	f("s=unix:/run/m.sock", Server{"s", "unix:/run/m.sock", 1})
	for _, bad := range []string{"", "a", "a=", "=h:1", "h:0", "h:70000", ":11211", "h:1@0", "h:1@x", "h:1@99999999", "h:port", "unix:"} {
		if s, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

func TestFile(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "servers")}
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(f.Path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Look(t.Context()); err == nil {
		t.Error("a missing file gave no error")
	}
	write("# the fleet\n\na=10.0.0.1:11211@2\r\n  10.0.0.2:11211 # old\n")
	a, err := f.Look(t.Context())
	want := []Server{{"a", "10.0.0.1:11211", 2}, {"10.0.0.2:11211", "10.0.0.2:11211", 1}}
	if diff := cmp.Diff(want, a.Servers); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	write("a=10.0.0.1:11211\nb=10.0.0.2\n")
	if _, err := f.Look(t.Context()); err == nil {
		t.Error("a bad line was passed over")
	}
}

func TestAddresses(t *testing.T) {
	z := serveDNS(t)
	d := DNS{Name: "cache.example.", Port: 11211, Resolver: z.conn.LocalAddr().String()}
	z.set(func() { z.a["cache.example."] = []string{"10.0.0.2", "10.0.0.1", "fd00::1"}; z.ttl = 17 })
	a, err := d.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{[]Server{
		{"10.0.0.1:11211", "10.0.0.1:11211", 1}, {"10.0.0.2:11211", "10.0.0.2:11211", 1}, {"[fd00::1]:11211", "[fd00::1]:11211", 1},
	}, 17 * time.Second}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, rcode := range []dnsmessage.RCode{dnsmessage.RCodeServerFailure, dnsmessage.RCodeNameError} {
		z.set(func() { z.rcode = rcode })
		if a, err := d.Look(t.Context()); err == nil {
			t.Errorf("%v was taken for %+v", rcode, a)
		}
	}
	z.set(func() { z.rcode, z.a["cache.example."] = 0, nil })
	if a, err := d.Look(t.Context()); err == nil {
		t.Errorf("an answer without addresses was taken for %+v", a)
	}
}

// TestServices: a server found by SRV keeps its name when its address changes.
func TestServices(t *testing.T) {
	z := serveDNS(t)
	name := "_memcache._tcp.cache.example."
	d := DNS{Name: name, Resolver: z.conn.LocalAddr().String()}
	record := func(target string, weight uint16) dnsmessage.SRVResource {
		return dnsmessage.SRVResource{Priority: 0, Weight: weight, Port: 11211, Target: dnsmessage.MustNewName(target)}
	}
	z.set(func() {
		z.srv[name] = []dnsmessage.SRVResource{record("cache-1.cache.example.", 3), record("cache-0.cache.example.", 0)}
		z.a["cache-0.cache.example."] = []string{"10.0.0.9", "10.0.0.1"}
		z.a["cache-1.cache.example."] = []string{"10.0.0.2"}
	})
	look := func(want ...Server) {
		t.Helper()
		a, err := d.Look(t.Context())
		if diff := cmp.Diff(want, a.Servers); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if a.TTL != time.Minute {
			t.Errorf("TTL %v", a.TTL)
		}
	}
	look(Server{"cache-0.cache.example:11211", "10.0.0.1:11211", 1}, Server{"cache-1.cache.example:11211", "10.0.0.2:11211", 3})
	z.set(func() { z.a["cache-1.cache.example."] = []string{"10.7.7.7"} })
	look(Server{"cache-0.cache.example:11211", "10.0.0.1:11211", 1}, Server{"cache-1.cache.example:11211", "10.7.7.7:11211", 3})
}

// answering is a prober for which some addresses are memcached servers.
type answering struct {
	mu    sync.Mutex
	addrs map[string]bool // guarded by mu
	tried int             // guarded by mu
}

func (a *answering) Probe(_ context.Context, addr string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried++
	if a.addrs[addr] {
		return nil
	}
	return errors.New("no memcached here")
}

// TestAnnounced: what is announced counts only when it has answered.
func TestAnnounced(t *testing.T) {
	p := &answering{addrs: map[string]bool{"10.0.0.1:1": true}}
	a := &Announced{Prober: p}
	now := time.Now()
	look := func(want ...Server) {
		t.Helper()
		got, err := a.Look(t.Context())
		if diff := cmp.Diff(want, got.Servers); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	one, two := Server{"one", "10.0.0.1:1", 1}, Server{"two", "10.0.0.2:1", 1}
	a.Announce("agent", two, now)
	a.Announce("agent", one, now)
	look(one)
	p.addrs[two.Address] = true
	look(one, two)
	moved := Server{"one", "10.0.0.3:1", 1}
	a.Announce("agent", moved, now)
	look(two)
	for _, bad := range []Server{{}, {"x", "nonsense", 1}, {"x", "h:1", 0}, {"", "h:1", 1}} {
		if a.Announce("agent", bad, now) {
			t.Errorf("%+v was taken", bad)
		}
	}
	a.expire(now.Add(11 * time.Minute))
	look()
}

// TestTenThousandAnnounced: only so many are kept and tried, and another who announces one
// is not kept out, whether it comes first or last.
func TestTenThousandAnnounced(t *testing.T) {
	p := &answering{addrs: map[string]bool{"10.0.0.1:1": true, "10.0.0.2:1": true}}
	a := &Announced{Prober: p}
	first, last := Server{"first", "10.0.0.1:1", 1}, Server{"last", "10.0.0.2:1", 1}
	a.Announce("other", first, time.Now())
	for i := range 10_000 {
		a.Announce("agent", Server{fmt.Sprint("s", i), fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), 1}, time.Now())
	}
	if !a.Announce("other", last, time.Now()) || a.Announce("agent", Server{"more", "10.0.0.3:1", 1}, time.Now()) {
		t.Error("the places are not shared")
	}
	got, err := a.Look(t.Context())
	if diff := cmp.Diff([]Server{first, last}, got.Servers); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if p.tried != probesPerLook || a.Rejected() != 9003 {
		t.Errorf("%d tried, %d rejected", p.tried, a.Rejected())
	}
}

// silent is a prober for which all addresses but one never answer.
type silent struct{ addr string }

func (s silent) Probe(ctx context.Context, addr string) error {
	if addr == s.addr {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestSilentAddressesHoldUpNobody: a thousand announced addresses that do not even refuse
// do not keep one that answers out, though it is the last to be tried.
func TestSilentAddressesHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Announced{Prober: silent{"10.0.0.1:1"}}
		for i := range 999 {
			a.Announce("agent", Server{fmt.Sprint("s", i), fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), 1}, time.Now())
		}
		good := Server{"z", "10.0.0.1:1", 1}
		a.Announce("agent", good, time.Now())
		w := &Watcher{Name: "announced", Source: a, Log: slog.New(slog.DiscardHandler)}
		began := time.Now()
		for range 4 {
			w.Look(t.Context())
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("looking four times took %v", took)
		}
		if diff := cmp.Diff([]Server{good}, w.List()); diff != "" || w.Stats().Failures > 0 {
			t.Errorf("%+v (-want +got):\n%s", w.Stats(), diff)
		}
	})
}
