package bounded_test

import (
	"fmt"

	"cacherouter/bounded"
)

// Ten reads of one key, at once, on four servers that are idle otherwise.
func ExampleBound() {
	c := bounded.Default([]int{1, 1, 1, 1})
	c.Floor = 3
	b, err := bounded.New(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates := []int{2, 0, 3, 1} // the key's home, and who may have a copy
	var took []int
	for range 10 {
		rank, within := b.Take(candidates, 0, bounded.Cost(0, 1))
		took = append(took, candidates[rank])
		if !within {
			fmt.Println("all full")
		}
	}
	fmt.Println(took)
	b.Release(2, 1)
	stats := b.Stats()
	fmt.Println(stats.Spilled[:3], b.InFlight(2), "of", b.Cap(2))
	// Output:
	// [2 2 2 0 0 0 3 3 3 2]
	// [0 3 3] 3 of 4
}
