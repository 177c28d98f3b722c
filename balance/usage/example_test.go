package usage_test

import (
	"fmt"
	"time"

	"cacherouter/balance/usage"
)

// Two answers of a server with two threads, a second apart.
func ExampleBetween() {
	before := usage.Parse([]byte("STAT threads 2\r\nSTAT rusage_user 10.0\r\nSTAT rusage_system 5.0\r\nSTAT cmd_get 100000\r\nEND\r\n"), 0)
	after := usage.Parse([]byte("STAT threads 2\r\nSTAT rusage_user 10.3\r\nSTAT rusage_system 5.2\r\nSTAT cmd_get 120000\r\nEND\r\n"), time.Second)
	r, err := usage.Between(before, after, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f requests a second at %.0f %% of what it can: %.0f at most\n", r.QPS, 100*r.Utilization, r.Weight(1))
	fmt.Println(r.Degraded)
	// Output:
	// 20000 requests a second at 25 % of what it can: 80000 at most
	// no curr_connections and max_connections
}
