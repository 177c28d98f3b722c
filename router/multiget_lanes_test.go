package router_test

import (
	"fmt"
	"strings"
	"testing"

	"cacherouter/router"

	"github.com/cespare/xxhash/v2"
)

// Keys of one class in one multiget stay on one lane, as later requests on them will.
func TestMultigetKeepsLanes(t *testing.T) {
	a, b := "a", ""
	for i := 0; b == ""; i++ {
		if k := fmt.Sprint("b", i); xxhash.Sum64String(k)>>24&255 == xxhash.Sum64String(a)>>24&255 {
			b = k
		}
	}
	f := listen(t)
	r := start(t, config{Pool: router.PoolConfig{BulkSize: 1000}}, f.addr())
	f.accept() // the lane for small values
	c := dial(t, r.addr)
	c.send(set(a, strings.Repeat("v", 2000)))
	bulk := f.accept()
	bulk.want(set(a, strings.Repeat("v", 2000)))
	bulk.send("STORED\r\n")
	c.want("STORED\r\n")
	c.send("get " + a + " " + b + "\r\n" + set(b, "new"))
	bulk.want("get " + a + " " + b + "\r\n" + set(b, "new"))
}
