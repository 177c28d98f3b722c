package fleet

import "time"

// cache is the items of a server, of which the least recently used is given up for a new one.
type cache struct {
	items []item // by key; items[len-1] is the ends of the list
	room  int
	used  int
}

type item struct {
	newer, older int32
	version      uint32
	present      bool
	expires      time.Duration // 0 means never
}

func newCache(keys, room int) *cache {
	c := &cache{items: make([]item, keys+1), room: room}
	end := c.end()
	c.items[end] = item{newer: end, older: end}
	return c
}

func (c *cache) end() int32 { return int32(len(c.items) - 1) }

// get returns the version of a key's value.
func (c *cache) get(key int32, now time.Duration) (version uint32, ok bool) {
	i := &c.items[key]
	switch {
	case !i.present:
		return 0, false
	case i.expires > 0 && now >= i.expires:
		c.remove(key)
		return 0, false
	}
	c.unlink(key)
	c.link(key)
	return i.version, true
}

// set keeps a value, unless there is a newer one: clients that read the origin at different times
// are not what is studied here.
func (c *cache) set(key int32, version uint32, expires time.Duration) {
	i := &c.items[key]
	if i.present {
		if version < i.version {
			return
		}
		c.unlink(key)
	} else if c.used++; c.used > c.room {
		c.remove(c.items[c.end()].newer)
	}
	i.present, i.version, i.expires = true, version, expires
	c.link(key)
}

func (c *cache) remove(key int32) {
	if i := &c.items[key]; i.present {
		i.present = false
		c.unlink(key)
		c.used--
	}
}

// link makes a key the most recently used: the older neighbour of the end.
func (c *cache) link(key int32) {
	end := c.end()
	last := c.items[end].older
	c.items[key].newer, c.items[key].older = end, last
	c.items[last].newer, c.items[end].older = key, key
}

func (c *cache) unlink(key int32) {
	i := &c.items[key]
	c.items[i.older].newer, c.items[i.newer].older = i.newer, i.older
}
