package accesslog

import (
	"strconv"
	"time"

	"cacherouter/router"
)

// Entry is a record as it is shown. Times are seconds since the request was read; each may be
// off by the length of a turn of the loop.
type Entry struct {
	Time     time.Time `json:"time"` // when it was read
	Client   string    `json:"client"`
	Listener string    `json:"listener"`
	Verb     string    `json:"verb"`
	// Key is the key as a Go string literal would have it, without quotes: of several, which
	// Keys counts, the first.
	Key  string `json:"key"`
	Keys int    `json:"keys"`
	// Pool is the key's, where the router has several.
	Pool string `json:"pool,omitempty"`
	// Server is the one that was asked last or, of several, that answered last.
	Server string `json:"server"`
	// Decided is what decided where it went; see [router.Way].
	Decided string `json:"decided"`
	// Outcome is what the reply says, and Gone that the client did not wait for it.
	Outcome string `json:"outcome"`
	Bytes   int    `json:"bytes"` // of the reply
	// Seconds is how long it took in all. Sent, First and Answered are when the server was
	// asked, when its reply began to come, and when the reply was there; null of what did not
	// happen.
	Seconds  float64  `json:"seconds"`
	Sent     *float64 `json:"sent"`
	First    *float64 `json:"first"`
	Answered *float64 `json:"answered"`
}

// gone is the outcome of a request whose client did not wait for it.
const gone = "gone"

// EntryOf returns a record as it is shown.
func EntryOf(r *router.Record) Entry {
	e := Entry{
		Time: r.At, Client: r.Client, Listener: r.Listener, Verb: r.Verb.String(), Key: Quoted(r.Key), Keys: r.Keys,
		Pool: r.Pool, Server: r.Server, Decided: r.Way.String(), Outcome: r.Outcome.String(), Bytes: r.Bytes, Seconds: r.Took.Seconds(),
	}
	if r.Server != "" {
		e.Sent = seconds(r.Sent)
	}
	if r.Gone {
		e.Outcome = gone
		return e
	}
	if e.Answered = seconds(r.Answered); r.Server != "" {
		e.First = seconds(r.First)
	}
	return e
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// Quoted returns a key as a Go string literal would have it, without quotes: whatever bytes it
// has, they can neither end a line nor be taken for something else.
func Quoted(key string) string {
	q := strconv.Quote(key)
	return q[1 : len(q)-1]
}
