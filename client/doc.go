// Package client is a memcached client whose router is in the same process: there is no hop
// between them.
//
// It does what a router that runs by itself does, with the same code: it places keys, shares
// requests, spreads hot keys. A program that uses it and a tier of routers can be mixed, as long
// as they place keys in the same way: by the same names and weights of servers and the same
// distribution, which the digests of the placements show. It needs memcached 1.6 or later.
package client
