package rendezvous_test

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"cacherouter/rendezvous"
)

func ExampleTable_Pick() {
	names := []string{"cache-a", "cache-b", "cache-c"}
	table, err := rendezvous.New(names, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"user:1", "user:2", "user:3"} {
		fmt.Print(key, ":")
		for _, i := range table.Pick(nil, xxhash.Sum64String(key), 2) {
			fmt.Print(" ", names[i])
		}
		fmt.Println()
	}
	// Output:
	// user:1: cache-c cache-b
	// user:2: cache-a cache-b
	// user:3: cache-a cache-b
}

// Only keys of the server that leaves move: each to what was its next candidate.
func ExampleTable_Without() {
	table, err := rendezvous.New([]string{"cache-a", "cache-b", "cache-c"}, []int{1, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	smaller, err := table.Without("cache-b")
	if err != nil {
		fmt.Println(err)
		return
	}
	moved, fromB := 0, 0
	for hash := range uint64(1000) {
		hash *= 1 << 54
		ranks := table.Pick(nil, hash, 2)
		if smaller.Name(smaller.Pick(nil, hash, 1)[0]) != table.Name(ranks[0]) {
			moved++
		}
		if table.Name(ranks[0]) == "cache-b" {
			fromB++
		}
	}
	fmt.Println(moved == fromB)
	// Output: true
}
