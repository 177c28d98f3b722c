package router

// Routes are a table of routes by which a router without sockets tells where keys go. The
// zero value is not usable; see [NewRoutes]. They are never changed, so any goroutine may
// ask.
type Routes struct {
	table *routes
}

// NewRoutes makes ready what a [Router] with pools of these names would go by, and returns
// the errors that it would. Without any routes all keys go to the first of the pools.
func NewRoutes(list []Route, pools []string) (*Routes, error) {
	var bare []*Pool // of which nothing but the names is looked at
	for _, name := range pools {
		bare = append(bare, &Pool{cfg: PoolConfig{Name: name}})
	}
	table, err := newRoutes(list, bare)
	if err != nil {
		return nil, err
	}
	return &Routes{table}, nil
}

// Target is where a key goes. The zero value is that of a key that has no route.
type Target struct {
	// Prefix is that of the key's route; empty is that for the rest of the keys.
	Prefix string
	// Pool is the name of its pool; empty if there is no route, or it denies the key.
	Pool string
	// Known is what servers call the key; empty where Pool is.
	Known string
}

// Target tells where a key goes.
func (t *Routes) Target(key string) Target {
	r := t.table.find([]byte(key))
	switch {
	case r == nil:
		return Target{}
	case r.deny:
		return Target{Prefix: string(r.prefix)}
	}
	return Target{Prefix: string(r.prefix), Pool: r.poolOf([]byte(key)).Name(), Known: string(r.appendKey(nil, []byte(key)))}
}

// Target tells where a key goes, for clients of listeners that have no routes of their own. Any
// goroutine may ask.
func (r *Router) Target(key string) Target {
	r.mu.Lock()
	table := r.routes
	r.mu.Unlock()
	return (&Routes{table}).Target(key)
}
