//go:build !linux

// Command loadtest offers load to memcached servers and routers. It needs Linux: its event loops
// use epoll, and it reads what processes cost from /proc.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "loadtest: cannot run here: it needs Linux")
	os.Exit(1)
}
