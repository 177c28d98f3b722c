//go:build linux

package load

import "fmt"

// Protocol is how a load speaks with its target.
type Protocol string

// The protocols. The empty Protocol is Text.
const (
	Text   Protocol = "text"   // get and set
	Meta   Protocol = "meta"   // mg KEY v and ms; several keys are asked for with quiet mg
	Binary Protocol = "binary" // the opcodes get and set; several keys are asked for with quiet gets
)

// dialect writes requests of one protocol and reads the replies to them. Its methods may be called
// concurrently.
type dialect interface {
	// appendGet appends the request for all the keys of calls.
	appendGet(dst []byte, calls []call) []byte
	appendSet(dst []byte, q call) []byte
	// scan finds the reply to q at the start of buf and the bytes it takes. A reply that is not
	// whole yet has no kind; want is then how long buf must grow at least, or 0 when that is not
	// known. A miss within a multiget takes no bytes: what follows tells of it. An error means that the other
	// side is out of step, or is no memcached.
	scan(buf []byte, q call) (r reply, taken, want int, err error)
}

func (p Protocol) validate() error {
	switch p {
	case Text, Meta, Binary, "":
		return nil
	}
	return fmt.Errorf("protocol is %q, not %s, %s or %s", string(p), Text, Meta, Binary)
}

// dialect is that of a valid protocol.
func (p Protocol) dialect(k *keyspace) dialect {
	switch p {
	case Meta:
		return meta{k}
	case Binary:
		return packets{k}
	}
	return text{k}
}
