// Package history records what concurrent clients of a cache saw, and judges it: could one register for each key, which
// may lose its value at any time, have answered like that?
//
// A cache may forget. So a miss is always right and says nothing, but what a completed write or delete has replaced must
// never be seen again, a counter counts exactly, and a successful cas met the very value whose token it was given.
// Histories are checked with Porcupine (github.com/anishathalye/porcupine), key by key and cut where that is sound; for
// several routers, where reads of copies may lag, there is a check of how far they do.
//
// The package is for tests. It knows neither sockets nor routers.
package history
