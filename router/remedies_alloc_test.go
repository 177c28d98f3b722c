package router_test

import (
	"strings"
	"testing"
	"time"

	"cacherouter/bounded"
	"cacherouter/coalesce"
	"cacherouter/hotkey"
	"cacherouter/refresh"
	"cacherouter/router"
)

// remedial is a router with all that spares servers, in front of three.
func remedial(t *testing.T, hot *hotkey.Config, renew refresh.Config) *running {
	t.Helper()
	near := longNear
	r := start(t, config{Pool: router.PoolConfig{Coalesce: &coalesce.Config{}, HotKeys: hot, Near: &near, Limit: &hotkey.LimitConfig{Rate: 1e7}, Lease: &coalesce.LeaseConfig{}, Refresh: renew, Membership: silent{}}}, addresses(t, 3)...)
	b, err := bounded.New(bounded.Default([]int{1, 1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	bound := *r.Table()
	bound.Bound, bound.Spill = b, router.SpillAny
	r.SetTable(&bound)
	return r
}

// With all that spares servers a request allocates nothing either, whether it leads a
// flight, joins one, waits for one, or is answered from the near cache. The collector of hot
// keys may, ten times a second.
func TestRemediesDoNotAllocate(t *testing.T) {
	const n, most = 200, 40 // one of a request's would be n
	value := strings.Repeat("v", 100)
	get, found := "get k\r\n", hit("k", value)+"END\r\n"
	meta, told := "mg k v f O1\r\n", "VA 100 f0 O1\r\n"+value+"\r\n"
	paths := []hotPath{
		{"a get that leads", get, found},
		{"gets that join", strings.Repeat(get, 8), strings.Repeat(found, 8)},
		{"gets that wait for those of another protocol", get + meta + get + meta, found + told + found + told},
		{"a meta get", meta, told},
		{"a set", set("k", value), "STORED\r\n"},
		{"a get, a set and a get", get + set("k", value) + get, found + "STORED\r\n" + found},
		{"a multiget", "get k j k\r\n", hit("k", value) + hit("k", value) + "END\r\n"},
	}
	for name, renew := range map[string]refresh.Config{"": {}, "renewed: ": due} {
		r := remedial(t, neverHot(), renew)
		c := dial(t, r.addr)
		c.ask(set("k", value), "STORED\r\n")
		for _, h := range paths {
			h.name = name + h.name
			wantAllocations(t, c, h, n, most)
		}
	}
	r := remedial(t, soon(), refresh.Config{})
	c := dial(t, r.addr)
	c.ask(set("k", value), "STORED\r\n")
	r.heat(c, "k", get, "END")
	for _, h := range paths[:4] {
		h.name = "near: " + h.name
		wantAllocations(t, c, h, n, most)
	}
	if r.total().Near.Hits == 0 {
		t.Error("nothing was near")
	}
}

// neverHot counts keys, of which none is ever hot.
func neverHot() *hotkey.Config {
	return &hotkey.Config{MinRate: 1e12, MinBytes: 1e12, Smooth: time.Second}
}
