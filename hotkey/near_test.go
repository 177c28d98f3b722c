package hotkey

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cacherouter/epoch"
	"pgregory.net/rapid"
)

type nearDesk struct {
	t *testing.T
	*Near
	now time.Duration
}

func newNearDesk(t *testing.T, c NearConfig) *nearDesk {
	t.Helper()
	if c.Epochs == nil {
		c.Epochs = epoch.New(0)
	}
	n, err := NewNear(c)
	if err != nil {
		t.Fatal(err)
	}
	return &nearDesk{t: t, Near: n}
}

func (d *nearDesk) store(key, value string) bool {
	return d.Fill(d.Begin(hashOfString(key), d.now), []byte(key), []byte(value))
}

func (d *nearDesk) has(key, want string) {
	d.t.Helper()
	got, ok := d.Find(hashOfString(key), []byte(key), d.now)
	if !ok && want == "" {
		return
	}
	if string(got) != want {
		d.t.Fatalf("%s is %q, want %q", key, got, want)
	}
}

func TestNearKeepsForItsTime(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: 250 * time.Millisecond})
	d.has("k", "")
	token := d.Begin(hashOfString("k"), 0)
	d.now = 200 * time.Millisecond // the answer takes its time, and is that old
	d.Fill(token, []byte("k"), []byte("v"))
	d.has("k", "v")
	d.has("l", "")
	d.now = 249 * time.Millisecond
	d.has("k", "v")
	d.now = 250 * time.Millisecond
	d.has("k", "")
	d.store("k", "w")
	d.has("k", "w")
}

func TestNearAndWrites(t *testing.T) {
	e := epoch.New(0)
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second, Epochs: e})
	k := hashOfString("k")
	fills := func(when string, token Token, want bool) {
		t.Helper()
		if d.Fill(token, []byte("k"), []byte("v")) != want {
			t.Errorf("a fill %s: %v", when, !want)
		}
	}
	fills("in peace", d.Begin(k, 0), true)
	before := d.Begin(k, 0)
	e.Began(k)
	d.has("k", "")
	fills("from before a write", before, false)
	during := d.Begin(k, 0)
	fills("during a write", during, false)
	e.Began(k)
	e.Ended(k)
	fills("during the first of two writes", d.Begin(k, 0), false)
	e.Ended(k)
	fills("from during a write", during, false)
	fills("from before a write", before, false)
	d.has("k", "")
	fills("after a write", d.Begin(k, 0), true)
	d.has("k", "v")
	before = d.Begin(k, 0)
	d.Invalidate(k)
	d.has("k", "")
	fills("from before a hint", before, false)
}

func TestNearIsBounded(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second})
	if d.store("k", strings.Repeat("x", 513)) {
		t.Error("a value too large is kept")
	}
	for i := range 1000 {
		key, value := fmt.Sprint("key", i), strings.Repeat("x", rand.IntN(513))
		if !d.store(key, value) {
			t.Fatalf("%d bytes are not kept", len(value))
		}
		d.has(key, value)
	}
	d.has("key1", "")
	if len(d.ring) != 4096 || d.Stats().TooLarge != 1 || d.Stats().Fills != 1000 {
		t.Errorf("%d bytes, %+v", len(d.ring), d.Stats())
	}
}

// What was overwritten is gone, even if what is there now looks like the key.
func TestNearOverwritten(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second})
	d.store("pad", "longer than a key")
	d.store("\x01", "value")
	for range 4096 / 512 {
		d.store("other", strings.Repeat("\x01", 512))
	}
	d.has("\x01", "")
}

// Two keys with one hash do not get each other's values.
func TestNearSameHash(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second})
	d.Fill(d.Begin(7, 0), []byte("a"), []byte("va"))
	if v, ok := d.Find(7, []byte("b"), 0); ok {
		t.Errorf("b is %q", v)
	}
	d.Fill(d.Begin(7, 0), []byte("b"), []byte("vb"))
	if v, _ := d.Find(7, []byte("b"), 0); string(v) != "vb" {
		t.Errorf("b is %q", v)
	}
}

// A hit is what was filled last, or nothing; never something else.
func TestNearModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := epoch.New(1 + rapid.IntRange(0, 64).Draw(rt, "epochs"))
		n, err := NewNear(NearConfig{Bytes: 4096, TTL: 100, Epochs: e})
		if err != nil {
			rt.Fatal(err)
		}
		type copied struct {
			value   []byte
			expires time.Duration
		}
		model, tokens, now := map[byte]copied{}, map[byte]Token{}, time.Duration(0)
		writing := map[byte]int{}
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			key := byte(rapid.IntRange(0, 9).Draw(rt, "key"))
			hash := uint64(key % 7) // some share it
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				tokens[key] = n.Begin(hash, now)
			case 1:
				// The value looks like the next key, in case it is taken for one.
				value := bytes.Repeat([]byte{(key + 1) % 10}, rapid.IntRange(0, 512).Draw(rt, "size"))
				if n.Fill(tokens[key], []byte{key}, value) {
					model[key] = copied{value, tokens[key].at + 100}
				}
			case 2:
				e.Began(hash)
				writing[key]++
				for other := range byte(10) {
					if other%7 == key%7 {
						delete(model, other)
						delete(tokens, other)
					}
				}
			case 3:
				if writing[key] > 0 {
					writing[key]--
					e.Ended(hash)
				}
			case 4:
				now += time.Duration(rapid.IntRange(0, 50).Draw(rt, "time"))
			}
			got, ok := n.Find(hash, []byte{key}, now)
			if want, known := model[key]; ok && (!known || !bytes.Equal(got, want.value) || now >= want.expires) {
				rt.Fatalf("key %d is %q at %v, want %q until %v", key, got, now, want.value, want.expires)
			}
		}
	})
}

// With room for all, what was filled is found.
func TestNearFinds(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 1 << 20, TTL: second})
	found := 0
	for i := range 1000 {
		d.store(fmt.Sprint("key", i), "value")
	}
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		if _, ok := d.Find(hashOfString(key), []byte(key), 0); ok {
			found++
		}
	}
	if found < 990 {
		t.Errorf("%d of 1000 found", found)
	}
}

func TestNearConfig(t *testing.T) {
	e := epoch.New(1)
	for _, c := range []NearConfig{
		{Bytes: 100, TTL: second, Epochs: e}, {Bytes: 4096, TTL: 0, Epochs: e}, {Bytes: 4096, TTL: 2 * second, Epochs: e},
		{Bytes: 4096, TTL: second}, {Bytes: 4096, TTL: second, Epochs: e, MaxValue: -1}, {Bytes: 1<<30 + 1, TTL: second, Epochs: e},
	} {
		if _, err := NewNear(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func newNearHit(t testing.TB) (find func()) {
	n, err := NewNear(NearConfig{Bytes: 1 << 20, TTL: second, Epochs: epoch.New(0)})
	if err != nil {
		t.Fatal(err)
	}
	key, value := []byte("user:profile:00000001"), make([]byte, 100)
	n.Fill(n.Begin(1, 0), key, value)
	return func() {
		if v, ok := n.Find(1, key, 0); !ok || len(v) != 100 {
			t.Fatal("not found")
		}
	}
}

func BenchmarkNearHit(b *testing.B) {
	find := newNearHit(b)
	b.ReportAllocs()
	for b.Loop() {
		find()
	}
}

func BenchmarkNearFill(b *testing.B) {
	n, err := NewNear(NearConfig{Bytes: 1 << 20, TTL: second, Epochs: epoch.New(0)})
	if err != nil {
		b.Fatal(err)
	}
	key, value := []byte("user:profile:00000001"), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		n.Fill(n.Begin(1, 0), key, value)
	}
}

func TestNearHitAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, newNearHit(t)); n > 0 {
		t.Errorf("%v allocations for a hit", n)
	}
}
