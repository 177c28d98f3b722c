package coalesce_test

import (
	"fmt"
	"time"

	"cacherouter/coalesce"
)

func Example() {
	table, err := coalesce.New[string](coalesce.Config{})
	if err != nil {
		panic(err)
	}
	get := func(who string) *coalesce.Flight[string] {
		own := new(coalesce.Flight[string])
		own.Ask(1, []byte("k"), 0, who, time.Second)
		f, role := table.Join(own, 0, 0)
		if role == coalesce.Leader {
			fmt.Println("send get k for", who)
		}
		return f
	}
	first := get("ann")
	get("bob")
	table.Sent() // the turn ends, the request leaves
	get("cleo")

	// The server's answer comes.
	var crew coalesce.Crew[string]
	next := table.Landed(first, &crew, 0)
	if next != nil {
		fmt.Println("send get k for", next.First())
	}
	for who, ok := table.Pop(&crew); ok; who, ok = table.Pop(&crew) {
		fmt.Println("answer", who)
	}
	// Output:
	// send get k for ann
	// send get k for cleo
	// answer ann
	// answer bob
}
