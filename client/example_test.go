package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"cacherouter/client"
	"cacherouter/embedded"
	"cacherouter/rendezvous"
	"cacherouter/router"
)

// A router within the program, before two servers that keys are placed on as a tier of routers
// would with the same names and weights.
func Example() {
	a, b := must(embedded.Start("127.0.0.1:0", embedded.Config{})), must(embedded.Start("127.0.0.1:0", embedded.Config{}))
	defer a.Close()
	defer b.Close()

	placement := must(rendezvous.New([]string{"cache-a", "cache-b"}, []int{1, 1}))
	r := must(router.New(router.Config{Pools: []router.PoolConfig{{
		Table: &router.Table{
			Servers: []router.Server{{Name: "cache-a", Address: a.Addr()}, {Name: "cache-b", Address: b.Addr()}},
			Picker:  placement,
		},
	}}}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() { stop(); <-ended }()

	c := client.New(r, client.Config{})
	defer c.Close()
	if _, err := c.Get(ctx, "user:42"); errors.Is(err, client.ErrMiss) {
		fmt.Println("not there yet")
	}
	if err := c.Set(ctx, client.Item{Key: "user:42", Value: []byte("Ada")}); err != nil {
		log.Fatal(err)
	}
	item := must(c.Get(ctx, "user:42"))
	fmt.Printf("%s\n", item.Value)
	// Output:
	// not there yet
	// Ada
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
