package maglev_test

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"cacherouter/maglev"
)

func ExampleTable_Pick() {
	names := []string{"cache-a", "cache-b", "cache-c"}
	table, err := maglev.New(names, nil)
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
	// user:1: cache-a cache-c
	// user:2: cache-b cache-a
	// user:3: cache-a cache-b
}
