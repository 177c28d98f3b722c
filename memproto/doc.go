// Package memproto speaks the memcached protocols, classic and meta text and binary: bytes
// in, requests and replies out. It knows no sockets and no routing.
//
// A router needs four facts of a request: the verb, the key or keys, how many bytes of
// data follow, and whether a reply is due. Everything else stays raw and is sent on as
// it came. So requests are parsed in place, by shape rather than by command, and every
// slice of a [Request] points into the caller's buffer.
//
// Where memcached releases differ, the lines of 1.6.18 are given; a data block whose
// length can be read is always swallowed, as later releases do.
package memproto

const (
	// MaxKey is the longest key memcached takes, in bytes, after base64 decoding.
	MaxKey = 250
	// maxShortLine is the longest line, in bytes, other than a retrieval's.
	maxShortLine = 2048
	// maxInt32Value is the longest data block whose length memcached can read.
	maxInt32Value = 1<<31 - 3
)

// The lines a router says in memcached's name, without their line end.
const (
	LineError        = "ERROR"
	LineBadFormat    = "CLIENT_ERROR bad command line format"
	LineBadDelete    = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"
	LineBadChunk     = "CLIENT_ERROR bad data chunk"
	LineBadExptime   = "CLIENT_ERROR invalid exptime argument"
	LineTooManyFlags = "CLIENT_ERROR options flags are too long"
	LineTooLarge     = "SERVER_ERROR object too large for cache"
)
