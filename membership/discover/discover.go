// Package discover finds out which servers there are: from a fixed list, a watched file,
// DNS, or announcements.
//
// A source only looks; a [Watcher] looks again and again and passes what it sees through
// a [Guard], because the commonest false answer is an empty or a short one: a resolver in
// trouble, a file half written. The last good list then stays in force.
package discover

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"
)

// Server is one memcached that was found.
type Server struct {
	// Name is the stable name that placement hashes.
	Name string
	// Address is host:port, or "unix:" and a path.
	Address string
	// Weight is its share, at least 1.
	Weight int
}

// Answer is what a source sees now.
type Answer struct {
	Servers []Server
	// TTL is how long the source says that the answer is good for; 0 means that it does
	// not say.
	TTL time.Duration
}

// Source looks which servers there are. Look may take a while, and ends with its context.
// A source need not be safe for concurrent use.
type Source interface {
	Look(ctx context.Context) (Answer, error)
}

// Static is a fixed list.
type Static []Server

// Look returns the list.
func (s Static) Look(context.Context) (Answer, error) { return Answer{Servers: s}, nil }

// Parse reads a server as it is written in lists: [name=]host:port[@weight]. Without a
// name the address is the name.
func Parse(s string) (Server, error) {
	name, addr, named := cutName(s)
	addr, weight, err := cutWeight(addr)
	if err != nil {
		return Server{}, err
	}
	if !named {
		name = addr
	}
	if err := check(name, addr); err != nil {
		return Server{}, err
	}
	return Server{name, addr, weight}, nil
}

// String writes the server as Parse reads it.
func (s Server) String() string {
	return s.Name + "=" + s.Address + "@" + strconv.Itoa(s.Weight)
}

// sorted returns the servers by name, of several with one name the first.
func sorted(servers []Server) []Server {
	s := slices.Clone(servers)
	slices.SortStableFunc(s, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(s, func(a, b Server) bool { return a.Name == b.Name })
}

// hostPort joins a host and a port.
func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
