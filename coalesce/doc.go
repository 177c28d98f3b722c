// Package coalesce makes many gets of one key cost its server one request, and many
// misses of one key cost the database one query.
//
// A [Table] holds the flights of one event loop. A flight is one request to a server and
// all the gets it will answer. In the strict mode, the default, a get joins a flight only
// until the flight's request may have left the router; gets that come later wait for the
// next flight, which is sent when the first one has landed. So every get is answered by
// a request that was sent after the get began, and no answer is older than it would be
// without coalescing, whoever else writes. The price is that a get waits up to one round
// trip for the flight ahead; the gain is that a key costs a server at most one read per
// round trip and loop, and one per write.
//
// [Leases] hold back the gets that follow a miss until the client that saw the miss has
// stored the value, for a bounded time.
package coalesce
