// Package embedded is a small memcached server that lives in the process of whoever
// starts it: for trying the router with nothing installed, and for tests that need a
// server which misbehaves on demand.
//
// It speaks the text protocols, classic and meta, as memcached 1.6.18 does, and reads
// requests with package memproto, so that what is refused is refused in the same words
// as the router uses. It has a goroutine per connection and one lock around all items:
// it is no data path, and simple is worth more here than fast.
package embedded
