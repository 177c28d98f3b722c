package compat

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxWeight is the largest weight of a server; the smallest is 1.
	MaxWeight = 65535

	maxServers = 65535
	maxPoints  = 1 << 23 // of a ring, and places in a table
)

// check returns an error that names the first entry that no program's list can have.
func check(servers []Server) error {
	if len(servers) == 0 {
		return errors.New("no servers")
	}
	if len(servers) > maxServers {
		return fmt.Errorf("%d servers: at most %d", len(servers), maxServers)
	}
	names, addrs := make(map[string]int), make(map[string]int)
	for i, s := range servers {
		if first, dup := addrs[s.Addr]; dup {
			return fmt.Errorf("servers %d and %d have the same address %q", first, i, s.Addr)
		}
		if first, dup := names[s.Name]; dup && s.Name != "" {
			return fmt.Errorf("servers %d and %d have the same name %q", first, i, s.Name)
		}
		if s.Weight < 1 || s.Weight > MaxWeight {
			return fmt.Errorf("server %q has weight %d: want 1 to %d", s.Addr, s.Weight, MaxWeight)
		}
		if _, err := split(s.Addr); err != nil {
			return err
		}
		addrs[s.Addr], names[s.Name] = i, i
	}
	return nil
}

// noWeights refuses weights where the program has none.
func noWeights(servers []Server) error {
	for _, s := range servers {
		if s.Weight != 1 {
			return fmt.Errorf("server %q has weight %d: this distribution has no weights", s.Addr, s.Weight)
		}
	}
	return nil
}

// endpoint is an address in the two parts that names of points are made of.
type endpoint struct {
	host string // without the brackets of an IPv6 address; for a Unix socket its path
	port string // as written; empty for a Unix socket
}

func split(addr string) (endpoint, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok || strings.HasPrefix(addr, "/") {
		return endpoint{host: path}, nil
	}
	i := strings.LastIndexByte(addr, ':')
	if i <= 0 || i == len(addr)-1 {
		return endpoint{}, fmt.Errorf("server %q: want host:port or unix:/path", addr)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(addr[:i], "["), "]")
	return endpoint{host: host, port: addr[i+1:]}, nil
}

// endpointOf splits an address that check has passed.
func endpointOf(s Server) endpoint {
	e, err := split(s.Addr)
	if err != nil {
		panic("bug: unchecked address: " + err.Error())
	}
	return e
}

// defaultPort is dropped from point names by twemproxy and libmemcached.
const defaultPort = "11211"

// dropDefault returns host:port, or the host alone if the port is memcached's own.
func (e endpoint) dropDefault() string {
	if e.port == defaultPort {
		return e.host
	}
	return e.host + ":" + e.port
}
