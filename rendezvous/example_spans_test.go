package rendezvous_test

import (
	"fmt"
	"iter"
	"math"

	"cacherouter/rendezvous"
)

// movedShare returns the exact share of the hash space whose home is another server after a change, by walking the spans of two placements in step.
func movedShare(before, after iter.Seq2[uint64, int], name, newName func(int) string) float64 {
	next, stop := iter.Pull2(after)
	defer stop()
	newLast, newHome, _ := next()
	moved, from := 0.0, uint64(0)
	for last, home := range before {
		for {
			end := min(last, newLast)
			if name(home) != newName(newHome) {
				moved += float64(end-from) + 1
			}
			from = end + 1
			if end == newLast {
				newLast, newHome, _ = next()
			}
			if end == last {
				break
			}
		}
	}
	return moved / math.Exp2(64)
}

func ExampleTable_Spans() {
	before, err := rendezvous.New([]string{"a", "b", "c", "d"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := before.With("e", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f\n", movedShare(before.Spans(), after.Spans(), before.Name, after.Name))
	// Output: 0.2002
}
