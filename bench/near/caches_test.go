package near

import (
	"bytes"
	"testing"
	"time"

	"cacherouter/epoch"
	"cacherouter/hotkey"

	"github.com/maypok86/otter/v2"
)

// cacheBytes is the memory for values in either cache.
const cacheBytes = 1 << 20

// cache is what a router needs of one: a hit must not be older than the last write of the
// key through the router, whichever loop that was on, and is never of another key.
type cache interface {
	fill(hash uint64, key, value []byte)
	find(hash uint64, key []byte) ([]byte, bool)
}

// ours is the near cache of one loop.
type ours struct {
	*hotkey.Near
	now time.Duration
}

func newOurs(t testing.TB, epochs *epoch.Table) cache {
	n, err := hotkey.NewNear(hotkey.NearConfig{Bytes: cacheBytes, TTL: time.Second, Epochs: epochs})
	if err != nil {
		t.Fatal(err)
	}
	return &ours{Near: n}
}

func (o *ours) fill(hash uint64, key, value []byte) { o.Fill(o.Begin(hash, o.now), key, value) }

func (o *ours) find(hash uint64, key []byte) ([]byte, bool) { return o.Find(hash, key, o.now) }

// theirs is one otter for all loops, by hash, as a string made of the key would be
// allocated for each look-up. What it keeps does not change, so a hit can be used after it
// was evicted.
type theirs struct {
	*otter.Cache[uint64, *entry]
	epochs *epoch.Table
}

type entry struct {
	key, value []byte
	epoch      uint64
}

func newTheirs(t testing.TB, epochs *epoch.Table) cache {
	c, err := otter.New(&otter.Options[uint64, *entry]{
		MaximumWeight:    cacheBytes,
		Weigher:          func(_ uint64, e *entry) uint32 { return uint32(len(e.key) + len(e.value)) },
		ExpiryCalculator: otter.ExpiryWriting[uint64, *entry](time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.StopAllGoroutines() })
	return &theirs{c, epochs}
}

func (o *theirs) fill(hash uint64, key, value []byte) {
	both := make([]byte, len(key)+len(value))
	copy(both, key)
	copy(both[len(key):], value)
	o.Set(hash, &entry{both[:len(key)], both[len(key):], o.epochs.Now(hash)})
}

func (o *theirs) find(hash uint64, key []byte) ([]byte, bool) {
	e, ok := o.GetIfPresent(hash)
	if !ok || e.epoch == 0 || e.epoch != o.epochs.Now(hash) || !bytes.Equal(e.key, key) {
		return nil, false
	}
	return e.value, true
}
