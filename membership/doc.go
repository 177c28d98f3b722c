// Package membership says which servers hold keys, which of them may be used now, and
// what has to be done before one that was away may serve again.
//
// A [Cluster] ties five things together, each a package of its own that knows nothing of
// the others' insides: discover finds servers, health judges them as this router sees
// them, view decides with the other routers which of them hold keys (damping holds back
// those that flap), gossip carries what is said between routers, and journal remembers
// what a server missed.
//
// A router with several pools has a cluster for each; a [Mesh] lets them share one gossip.
//
// The cluster publishes levels, not edges: a State that is never changed, and a signal
// that there is a new one. Who misses a signal, or gets one too many, reads the state and
// is right.
package membership
