package router

import (
	"time"

	"cacherouter/memproto"
)

// Recording says of which requests somebody wants a record, and who. The zero value is nobody.
type Recording struct {
	// To is called on the goroutines of the loops, and must neither wait nor keep the
	// record; nil means that there are no records.
	To func(*Record)
	// Every samples one in so many requests of each loop; 0 means none.
	Every int
	// Over is the time from which a request is slow, and recorded as such; 0 means that none
	// is. At most SlowRate a second are, of all loops together.
	Over     time.Duration
	SlowRate int
}

// Record is what became of one request of a client. Its times are those of turns of a loop,
// so each may be off by the length of one: what happens within a turn takes no time.
type Record struct {
	Sampled, Slow bool // why there is a record
	// At is when the request was read.
	At time.Time
	// Client is the address of the client as memcached writes it, and Listener the one that
	// it has come in by.
	Client, Listener string
	Verb             memproto.Verb
	// Key is the key, or the first of Keys; empty if the request is about none.
	Key  string
	Keys int
	// Pool is the name of the key's pool or, of several keys, of that of Server; empty where the
	// router has one alone, and of what is about no key.
	Pool string
	// Server is the name of the one that was asked last or, of several, that answered last;
	// empty if none was.
	Server string
	Way    Way
	// Outcome is what the reply says; it is Done where Gone says that the client did not wait
	// for it.
	Outcome memproto.Outcome
	Gone    bool
	// Bytes is the length of the reply, were it shown in the text protocol.
	Bytes int
	// Took is from At until the reply was passed on, which is when those to the client's
	// earlier requests have been, or until the client was gone.
	Took time.Duration
	// Sent, First and Answered are when Server was asked, when its reply began to come, and
	// when the reply was there. They count from At, and are 0 of what did not happen.
	Sent, First, Answered time.Duration
}

// Way says what decided where a request went.
type Way uint8

// The ways.
const (
	// Home: the placement alone.
	Home Way = iota
	// Unasked: no server was asked, as the key had too many requests, or the servers too much
	// to do, or none could be.
	Unasked
	// Several: it has several keys, or is for all servers.
	Several
	// Spilled: another candidate was asked, as the home was at its bound.
	Spilled
	// Copied: one of the servers that hold copies was chosen.
	Copied
	// Redirected: a read failed at the key's home, and the next candidate was asked.
	Redirected
	// FailedOver: a write went to the next candidate of a server that is away.
	FailedOver
	// HandedOver: the server was asked where the key lived before the placement changed.
	HandedOver
	// Near: the near cache had it.
	Near
	// Joined: it shared the request of another get.
	Joined
	// Leased: it missed, and waited for another client to store the value.
	Leased
	numWays
)

var wayText = [numWays]string{
	Home: "home", Unasked: "unasked", Several: "several", Spilled: "spilled", Copied: "copy", Redirected: "redirected",
	FailedOver: "failed_over", HandedOver: "handed_over", Near: "near_cache", Joined: "joined", Leased: "leased",
}

// String names the way in one word.
func (w Way) String() string { return wayText[w] }
