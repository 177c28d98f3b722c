// Package hotkey finds the keys that get an outsized share of the traffic, and keeps
// copies of the hottest.
//
// Each event loop counts every key in a [Sketch] of its own, which is small enough to
// stay in the processor's cache and needs no lock. Ten times a second the loops hand
// over what was added, as a [Snapshot], and a [Collector] merges it: it knows the rate and
// the share of each outstanding key, and says which are hot. The loops look that up in a
// [Heat]. What is hot is a share of traffic, not a number of requests, as a share is what
// makes one server fuller than the others.
//
// A [Near] cache answers gets of the hottest keys without asking a server, for at most a
// second, and never with a value that a write through this router has replaced.
package hotkey
