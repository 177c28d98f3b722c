package compat

import (
	"fmt"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
)

// Go's usual client divides a CRC-32 by the number of servers.
func TestModuloIsGomemcaches(t *testing.T) {
	list := servers(7)
	var addrs []string
	for _, s := range list {
		addrs = append(addrs, s.Addr)
	}
	var theirs memcache.ServerList
	if err := theirs.SetServers(addrs...); err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Distribution: "modulo", Hash: "crc32a", Servers: list})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		key := fmt.Sprint("user:", i)
		want, err := theirs.PickServer(key)
		if err != nil {
			t.Fatal(err)
		}
		if got := list[p.Pick(nil, p.Hash([]byte(key)), 1)[0]].Addr; got != want.String() {
			t.Fatalf("%s is on %s, want %s", key, got, want)
		}
	}
}
