package embedded_test

import (
	"fmt"
	"log"

	"cacherouter/embedded"

	"github.com/bradfitz/gomemcache/memcache"
)

// A server for the tests of a program that uses memcached, and of what the program does
// when memcached is not well.
func Example() {
	s, err := embedded.Start("127.0.0.1:0", embedded.Config{Memory: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	c := memcache.New(s.Addr())
	defer c.Close()

	c.Set(&memcache.Item{Key: "hello", Value: []byte("world")})
	it, err := c.Get("hello")
	fmt.Printf("%s %v\n", it.Value, err)

	s.SetFault(embedded.HalfReply)
	_, err = c.Get("hello")
	fmt.Println(err)
	// Output:
	// world <nil>
	// EOF
}
