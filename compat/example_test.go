package compat_test

import (
	"fmt"

	"cacherouter/compat"
)

// A pool that nutcracker served with "hash: fnv1a_64, distribution: ketama" keeps its keys where they are.
func ExampleNew() {
	servers := []compat.Server{{Addr: "127.0.0.1:31211", Weight: 1}, {Addr: "127.0.0.1:31212", Weight: 1}, {Addr: "127.0.0.1:31213", Weight: 1}}
	p, err := compat.New(compat.Config{Distribution: "twemproxy-ketama", Hash: "fnv1a_64", HashTag: "{}", Servers: servers})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"{user:1}:name", "{user:1}:mail", "order:77"} {
		for _, i := range p.Pick(nil, p.Hash([]byte(key)), 1) {
			fmt.Println(key, servers[i].Addr)
		}
	}
	// Output:
	// {user:1}:name 127.0.0.1:31213
	// {user:1}:mail 127.0.0.1:31213
	// order:77 127.0.0.1:31211
}
