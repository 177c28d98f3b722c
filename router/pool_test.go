package router

import (
	"testing"
	"time"
)

// A pool that takes another one's place knows what that has promised: else a write that is still
// on its way there would not keep the new one from keeping, or copying, what it replaces.
func TestPoolFollowsAnother(t *testing.T) {
	r, err := New(Config{Pools: []PoolConfig{{Timeout: time.Minute, Table: &Table{Servers: []Server{{Name: "a", Address: "127.0.0.1:1"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	before := r.pools[0]
	next, err := r.NewPool(PoolConfig{Timeout: time.Second}, before)
	if err != nil {
		t.Fatal(err)
	}
	if next.epochs != before.epochs || next.copies != before.copies || next.workers[0].epochs != before.epochs {
		t.Error("it does not know which keys are written, or copied")
	}
	for id, st := range before.standings {
		if next.standings[id] != st {
			t.Error("it does not know what is thought of the servers")
		}
	}
	if next.copyLife() != before.copyLife() || next.born != before.born {
		t.Error("it does not know how old copies may be")
	}
	version := before.version.Load()
	next.SetTable(&Table{Servers: []Server{{Name: "b", Address: "127.0.0.1:2"}}})
	if before.Table() != next.Table() || before.version.Load() != version+1 {
		t.Error("a write that is still on its way to the one before does not learn of a new table")
	}
	next.unfollow()
	next.SetTable(next.Table())
	if before.version.Load() != version+1 {
		t.Error("a pool that is gone gets tables")
	}
}
