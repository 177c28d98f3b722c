// Package usage tells from two answers of a memcached to "stats" how much of its capacity is in use,
// as balance's policy by reported load wants to know.
//
// Memcached says nothing of the kind itself. It does say how much processor time it used, how
// many threads it has, and how many of its connections are taken, and whichever of the two is nearer
// to its end is what limits it. The price is a coarse measure: the threads may share fewer processors
// than they are, which nobody but the operator knows.
package usage

import (
	"bytes"
	"strconv"
	"time"
)

// Snapshot is what one answer to "stats" says of a server's load. A count is missing when the server
// does not tell it.
type Snapshot struct {
	At             time.Duration // when it was taken, since any fixed instant
	PID            Count
	Uptime         Count // seconds
	Threads        Count
	CPU            Count // user and system time since the start, microseconds
	Connections    Count
	MaxConnections Count // as configured
	Reserved       Count // connections of those that clients do not get
	Requests       Count // gets by key, and all other commands on keys, since the start
	Errors         Count // what was refused for want of memory or connections, since the start
}

// Count is a number that may be missing. The zero value is.
type Count struct {
	N     uint64
	Known bool
}

func (c *Count) add(n uint64) { c.N, c.Known = c.N+n, true }

// Parse reads an answer to "stats": lines of STAT, a name and a value. It takes other lines, unknown
// names and values that are no numbers for nothing said.
func Parse(reply []byte, at time.Duration) Snapshot {
	s := Snapshot{At: at}
	var user, system Count
	for line := range bytes.Lines(reply) {
		f := bytes.Fields(line)
		if len(f) != 3 || string(f[0]) != "STAT" {
			continue
		}
		name, value := string(f[1]), string(f[2])
		switch name {
		case "rusage_user":
			user = seconds(value)
		case "rusage_system":
			system = seconds(value)
		default:
			s.take(name, value)
		}
	}
	// Half of the time would look like a fast server.
	if user.Known && system.Known {
		s.CPU.add(user.N + system.N)
	}
	return s
}

// take takes in a value that is a whole number.
func (s *Snapshot) take(name, value string) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return
	}
	switch name {
	case "pid":
		s.PID.add(n)
	case "uptime":
		s.Uptime.add(n)
	case "threads":
		s.Threads.add(n)
	case "curr_connections":
		s.Connections.add(n)
	case "max_connections":
		s.MaxConnections.add(n)
	case "reserved_fds":
		s.Reserved.add(n)
	case "cmd_get", "cmd_set", "cmd_touch", "delete_hits", "delete_misses", "incr_hits", "incr_misses", "decr_hits", "decr_misses":
		s.Requests.add(n)
	case "rejected_connections", "store_no_memory", "response_obj_oom", "read_buf_oom":
		s.Errors.add(n)
	}
}

// seconds reads a time like 12.345678 into microseconds.
func seconds(value string) (c Count) {
	if f, err := strconv.ParseFloat(value, 64); err == nil && f >= 0 && f < 1e12 {
		c.add(uint64(f*1e6 + 0.5))
	}
	return c
}
