package balance_test

import (
	"fmt"
	"time"

	"cacherouter/balance"
)

// Three servers hold a copy. One of them answers, but slowly.
func ExampleBalancer() {
	c := balance.Default([]int{1, 1, 1})
	c.Policy, c.Seed = balance.PeakEWMA, 1
	b, err := balance.New(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	took := []time.Duration{200 * time.Microsecond, 90 * time.Millisecond, 300 * time.Microsecond}
	slow := 0
	for range 1000 {
		candidates := []int{0, 1, 2}
		server := candidates[b.Pick(candidates)]
		b.Started(server)
		b.Done(server, took[server], false)
		if server == 1 {
			slow++
		}
	}
	fmt.Println(slow, "of 1000 to the slow server")
	// Output: 1 of 1000 to the slow server
}
