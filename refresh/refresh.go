// Package refresh lets one client renew a value that nears its end, while the others
// still get it.
//
// memcached's meta protocol can choose the one: a meta get with the flag R gives a token
// to the first that finds the item near its end, and says to all others that the token is
// out. A client of the classic protocol knows of no tokens, but it knows what to do about
// a miss. So the router asks with R for it, shows a miss to the one with the token, and
// the value to all others. Nobody gets a value beyond its time.
//
// The package says what to ask and how to read what comes back; it does no input or
// output.
package refresh

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Config says what is asked of the server with each get.
type Config struct {
	// Before is how long before its end a value is renewed, in whole seconds, at most 30
	// days; 0 means never. The server counts whole seconds too, and a value that has so
	// many left is not renewed yet. Values that do not expire are not renewed.
	Before time.Duration
	// Vivify is how long, in whole seconds, at most 30 days, the server holds back all
	// but the first who misses a key, through whatever router they come; 0 means that it
	// does not. It does so with an empty item in place of the missing one, which those
	// who do not come through a router of ours would take for the value.
	Vivify time.Duration
}

const (
	second  = time.Second
	longest = 30 * 24 * time.Hour // beyond it, memcached reads a time as a date
)

// Validate fails when a field makes no sense.
func (c *Config) Validate() error {
	for _, d := range []time.Duration{c.Before, c.Vivify} {
		if d < 0 || d > longest || d%second != 0 {
			return fmt.Errorf("cannot renew with times %v and %v: they must be whole seconds, from 0 to %v", c.Before, c.Vivify, longest)
		}
	}
	return nil
}

// AppendFlags appends the flags of a meta get that reads value and flags of an item, and
// its unique number if unique, in the way of c, each with a space before it.
func (c *Config) AppendFlags(dst []byte, unique bool) []byte {
	dst = append(dst, " v f"...)
	if unique {
		dst = append(dst, " c"...)
	}
	if c.Before > 0 {
		dst = strconv.AppendInt(append(dst, " R"...), int64(c.Before/second), 10)
	}
	if c.Vivify > 0 {
		dst = strconv.AppendInt(append(dst, " N"...), int64(c.Vivify/second), 10)
	}
	return dst
}

// Sight is what a reply means for the clients that wait for it.
type Sight uint8

// The sights.
const (
	// Unknown is no reply to a meta get, such as an error: it is passed on.
	Unknown Sight = iota
	// Miss is shown as a miss to all.
	Miss
	// Value is shown to all.
	Value
	// Won is shown to one as a miss, the one that is to store a new value. The others
	// that wait for the same reply are shown what it has: a value if Filled, else
	// another reply has to be awaited.
	Won
	// Old is a value that somebody renews already, and is shown to all.
	Old
	// Filling is an empty value that somebody renews. That may be a missing one that was
	// vivified: those who vivify wait, or show a miss. Others show it, as memcached does.
	Filling
)

// String returns the sight in lower case.
func (s Sight) String() string {
	return [...]string{"unknown", "miss", "value", "won", "old", "filling"}[s]
}

// Look reads a reply to a get that was asked with AppendFlags; its first line is enough.
//
// The flags W (won) and Z (somebody has) come from N and R and from meta clients that
// have marked the item as stale. X says that it is, and changes nothing here: one renews
// it, the others get what a plain get returns.
func Look(reply []byte) Sight {
	line, _, _ := bytes.Cut(reply, []byte{'\r'})
	verb, rest := word(line)
	switch string(verb) {
	case "EN":
		return Miss
	case "VA":
		size, flags := word(rest)
		return sight(flags, string(size) == "0")
	}
	return Unknown
}

func sight(flags []byte, empty bool) Sight {
	s, plain := Value, true // plain: no client flags
	for w, rest := word(flags); len(w) > 0; w, rest = word(rest) {
		switch w[0] {
		case 'W':
			return Won
		case 'Z', 'X':
			s = Old
		case 'f':
			plain = string(w) == "f0"
		}
	}
	if s == Old && empty && plain {
		return Filling
	}
	return s
}

// Filled reports whether a reply has a value to show: an empty one may be vivified.
func Filled(reply []byte) bool {
	line, _, _ := bytes.Cut(reply, []byte{'\r'})
	_, rest := word(line)
	size, _ := word(rest)
	return len(size) > 0 && string(size) != "0"
}

func word(s []byte) (w, rest []byte) {
	s = bytes.TrimLeft(s, " ")
	end := bytes.IndexByte(s, ' ')
	if end < 0 {
		return s, nil
	}
	return s[:end], s[end:]
}
