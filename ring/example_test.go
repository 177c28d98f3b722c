package ring_test

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"cacherouter/ring"
)

func ExampleRing_Pick() {
	names := []string{"cache-a", "cache-b", "cache-c"}
	r, err := ring.New(names, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"user:1", "user:2", "user:3"} {
		fmt.Print(key, ":")
		for _, i := range r.Pick(nil, xxhash.Sum64String(key), 2) {
			fmt.Print(" ", names[i])
		}
		fmt.Println()
	}
	// Output:
	// user:1: cache-c cache-a
	// user:2: cache-b cache-c
	// user:3: cache-c cache-b
}
