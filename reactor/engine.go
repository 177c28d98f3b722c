package reactor

import "slices"

// Engine is a way to serve sockets. The handlers cannot tell them apart.
type Engine string

// Engines. The zero value is Auto.
const (
	// Auto is Epoll where there is epoll, and else Portable.
	Auto Engine = "auto"
	// Uring waits, receives and sends through Linux's io_uring.
	Uring Engine = "uring"
	// Epoll waits in epoll and reads and writes by system calls.
	Epoll Engine = "epoll"
	// Portable makes every connection a net.Conn with goroutines.
	Portable Engine = "portable"
)

// Known reports whether e is one of the engines above, whether it works here or not.
func (e Engine) Known() bool { return slices.Contains(engines, e) || e == Auto }

var engines = []Engine{Epoll, Uring, Portable}

// Engines returns those that can be used on this system, Auto aside.
func Engines() (usable []Engine) {
	for _, e := range engines {
		if Usable(e) == nil {
			usable = append(usable, e)
		}
	}
	return usable
}
