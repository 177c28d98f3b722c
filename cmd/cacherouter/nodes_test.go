package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cacherouter/membership/gossip"
)

func TestAdvertisedRouters(t *testing.T) {
	now := time.Unix(1000, 0)
	var members []gossip.Member
	a := &advertised{members: func() []gossip.Member { return members }, now: func() time.Time { return now }}
	f := func(version int64, want []string, notes ...string) {
		t.Helper()
		members = nil
		for _, n := range notes {
			members = append(members, gossip.Member{Note: n})
		}
		if v, got := a.list(); v != version || !slices.Equal(got, want) {
			t.Errorf("%q: version %d, %q, want %d, %q", notes, v, got, version, want)
		}
	}
	f(1000, []string{"h:1", "h:2"}, "h:1", "", "h:2")
	now = now.Add(time.Minute)
	f(1000, []string{"h:1", "h:2"}, "h:1", "h:2")
	f(1060, []string{"h:2"}, "", "h:2")
	f(1061, []string{"h:1", "h:2"}, "h:1", "h:2") // within the same second
	f(1061, []string{"h:1", "h:2"}, "", "")       // all drain
}

// Each client is told of its part, always the same whichever of its ports asks, and the
// routers share the clients.
func TestPartsOfClients(t *testing.T) {
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprint("r", i))
	}
	n := &nodes{size: 3, routers: func() (int64, []string) { return 7, all }}
	count := make(map[string]int)
	const clients = 3000
	for i := range clients {
		host := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		version, got := n.of(host + ":1")
		if _, again := n.of(host + ":2"); version != 7 || len(got) != 3 || !slices.Equal(got, again) {
			t.Fatalf("%s: version %d, %q, then %q", host, version, got, again)
		}
		for _, r := range got {
			count[r]++
		}
	}
	for _, r := range all {
		if share := float64(count[r]) / clients; share < 0.25 || share > 0.35 {
			t.Errorf("%s is told to %.3f of the clients, want about 0.3", r, share)
		}
	}
	n.size = 0
	if _, got := n.of("unix:/x"); len(got) != len(all) {
		t.Errorf("all are %d", len(got))
	}
}
