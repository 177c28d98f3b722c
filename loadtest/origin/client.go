package origin

import "cacherouter/loadtest/caller"

// Client is a look-aside client over one connection. It is not safe for concurrent use; its origin
// may be shared.
type Client struct {
	Cache  *caller.Conn
	Origin *Origin
	TTL    int // of what it stores, in seconds; 0 is for ever
	// Value makes the value of a key, as the origin would. It must be set.
	Value func(key string) []byte
}

// Answer says where a value came from.
type Answer struct {
	Value []byte
	Hit   bool  // the cache had it
	Err   error // the first thing that went wrong at the cache; the value is right all the same
}

// Get returns the value of a key. A cache that fails is as good as one that has nothing.
func (c *Client) Get(key string) Answer {
	value, hit, err := c.Cache.Get(key)
	if hit {
		return Answer{Value: value, Hit: true}
	}
	c.Origin.Fetch()
	value = c.Value(key)
	if errSet := c.Cache.Set(key, value, c.TTL); err == nil {
		err = errSet
	}
	return Answer{Value: value, Err: err}
}
