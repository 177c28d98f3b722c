package membership

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"cacherouter/membership/gossip"
)

// DefaultPool is the name of the pool of routers that have one and do not name it.
const DefaultPool = "default"

// Mesh is one gossip that the clusters of several pools share. Each message says which pool
// it is about, but those about DefaultPool: they are what a router with this pool alone
// sends, so that it and one with more understand each other about it. Any goroutine may use
// a mesh.
type Mesh struct {
	cfg   gossip.Config
	ready chan struct{} // closed when all pools have joined that are waited for

	mu      sync.Mutex
	pools   []string                  // guarded by mu: that may join, or have
	members map[string]gossip.Handler // guarded by mu: by pool
	strange map[string]bool           // guarded by mu: pools of others that were logged
	gossip  *gossip.Gossip            // nil before ready
	err     error                     // of the start, set before ready
}

// NewMesh returns a gossip for clusters of some pools. It begins when all of them have been
// started, each of which waits for the others.
func NewMesh(c gossip.Config, pools ...string) *Mesh {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Mesh{
		cfg: c, pools: slices.Clone(pools), ready: make(chan struct{}),
		members: map[string]gossip.Handler{}, strange: map[string]bool{},
	}
}

// Add lets the cluster of one more pool join a gossip that has begun.
func (m *Mesh) Add(pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = append(m.pools, pool)
	delete(m.strange, pool)
}

// join adds the cluster of a pool, and returns its way to the other routers.
func (m *Mesh) join(ctx context.Context, pool string, h gossip.Handler) (link, error) {
	m.mu.Lock()
	if !slices.Contains(m.pools, pool) || m.members[pool] != nil {
		m.mu.Unlock()
		return nil, fmt.Errorf("pool %q is not one that is waited for", pool)
	}
	m.members[pool] = h
	begun := m.gossip != nil
	last := !begun && len(m.members) == len(m.pools)
	m.mu.Unlock()
	if begun {
		m.gossip.Meet(ctx) // the others may know of the pool's servers
		return meshLink{m.gossip, m, pool}, nil
	}
	if last {
		g, err := gossip.Start(m.cfg, meshHandler{m})
		m.mu.Lock()
		m.gossip, m.err = g, err
		m.mu.Unlock()
		close(m.ready)
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		m.left(pool)
		return nil, ctx.Err()
	}
	if m.err != nil {
		return nil, m.err
	}
	return meshLink{m.gossip, m, pool}, nil
}

// left notes that a pool is closed, and reports whether it was the last one.
func (m *Mesh) left(pool string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, pool)
	m.pools = slices.DeleteFunc(m.pools, func(p string) bool { return p == pool })
	return len(m.pools) == 0
}

// first returns the pool that stands for all.
func (m *Mesh) first() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pools) == 0 {
		return DefaultPool
	}
	return m.pools[0]
}

// enclosed is the first byte of what says which pool it is about; no message begins so by
// itself. Then come parts, each the length of the pool's name, the name, the length of the
// message, and the message.
const enclosed = 0xff

// appendPart appends a message about a pool.
func appendPart(b []byte, pool string, message []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(pool))), pool...)
	return append(binary.AppendUvarint(b, uint64(len(message))), message...)
}

// enclose says which pool a message is about.
func enclose(pool string, message []byte) []byte {
	if pool == DefaultPool {
		return message
	}
	return appendPart([]byte{enclosed}, pool, message)
}

// cutPart takes a string with its length before it off b.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	b = b[size:]
	return b[:n], b[n:], true
}

// deliver gives what came to the pools that it is about.
func (m *Mesh) deliver(b []byte, give func(h gossip.Handler, message []byte)) {
	if len(b) == 0 || b[0] != enclosed {
		m.pass(DefaultPool, b, give)
		return
	}
	for b = b[1:]; len(b) > 0; {
		pool, rest, ok := cutPart(b)
		var message []byte
		if ok {
			message, rest, ok = cutPart(rest)
		}
		if !ok { // of somebody else: the pool that all have counts it as senseless
			m.pass(m.first(), []byte{enclosed}, give)
			return
		}
		m.pass(string(pool), message, give)
		b = rest
	}
}

// maxStrange bounds how many pools of others are logged.
const maxStrange = 16

func (m *Mesh) pass(pool string, message []byte, give func(h gossip.Handler, message []byte)) {
	m.mu.Lock()
	h := m.members[pool]
	first := h == nil && !m.strange[pool] && len(m.strange) < maxStrange
	if first {
		m.strange[pool] = true
	}
	m.mu.Unlock()
	switch {
	case h != nil:
		give(h, message)
	case first:
		m.cfg.Log.Warn("another router speaks of a pool that this one does not have", "pool", fmt.Sprintf("%.64q", pool))
	}
}

// meshHandler takes in what other routers say.
type meshHandler struct{ m *Mesh }

func (h meshHandler) State() []byte {
	h.m.mu.Lock()
	members := maps.Clone(h.m.members) // all that are waited for are there before there is a gossip
	h.m.mu.Unlock()
	b := []byte{enclosed}
	for _, pool := range slices.Sorted(maps.Keys(members)) {
		state := members[pool].State()
		if len(members) == 1 {
			return enclose(pool, state)
		}
		b = appendPart(b, pool, state)
	}
	return b
}

func (h meshHandler) Merge(b []byte)    { h.m.deliver(b, gossip.Handler.Merge) }
func (h meshHandler) Hint(b []byte)     { h.m.deliver(b, gossip.Handler.Hint) }
func (h meshHandler) Announce(b []byte) { h.m.deliver(b, gossip.Handler.Announce) }

// meshLink is a pool's way to the other routers.
type meshLink struct {
	*gossip.Gossip
	m    *Mesh
	pool string
}

func (l meshLink) Send(b []byte)         { l.Gossip.Send(enclose(l.pool, b)) }
func (l meshLink) SendHint(b []byte)     { l.Gossip.SendHint(enclose(l.pool, b)) }
func (l meshLink) SendAnnounce(b []byte) { l.Gossip.SendAnnounce(enclose(l.pool, b)) }

// Close ends the gossip with the last pool.
func (l meshLink) Close(ctx context.Context) error {
	if !l.m.left(l.pool) {
		return nil
	}
	return l.Gossip.Close(ctx)
}
