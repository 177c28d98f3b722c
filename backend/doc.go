// Package backend is one memcached server as one event loop sees it: pipelined
// connections, the queue of calls that wait for replies on each, timeouts, and
// reconnecting.
//
// A server has two lanes, each one connection: small values travel on the first, big
// ones on the second, so that a value of a megabyte does not hold up a small one.
// Requests on one key keep their order: a key with a call outstanding on one lane stays
// on it.
//
// A connection that is lost, late, or makes no sense is dropped and made again. Reads
// that waited on it are sent once more, everything else fails. On the second lane a call
// is not late while bytes of big values move. What happens to calls is told to who wants
// to know how the server does.
package backend

// Failure is why a call got no reply.
type Failure uint8

// The failures.
const (
	Refused  Failure = iota + 1 // the server takes no connection, or cannot be found
	Lost                        // the connection ended or was reset
	TimedOut                    // no reply, or no connection, in time
	BadReply                    // the reply made no sense
	Busy                        // too much is waiting for the server already
	Denied                      // the server does not accept our user and password
	NumFailures
)

var failureText = [NumFailures]string{
	Refused:  "connection refused",
	Lost:     "connection lost",
	TimedOut: "timeout",
	BadReply: "bad reply",
	Busy:     "busy",
	Denied:   "authentication failed",
}

// Error names the failure in a few words.
func (f Failure) Error() string { return failureText[f] }

// Label names the failure as a metric label.
func (f Failure) Label() string { return failureLabel[f] }

var failureLabel = [NumFailures]string{
	Refused:  "refused",
	Lost:     "lost",
	TimedOut: "timeout",
	BadReply: "bad_reply",
	Busy:     "busy",
	Denied:   "denied",
}
