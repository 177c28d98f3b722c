package hotkey

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/epoch"
)

// A million keys asked for once, among them none twice: none is hot, and neither loops
// nor the collector remember more than before.
func TestMillionKeysOnce(t *testing.T) {
	s := newTraffic(t, 2, Config{Servers: 1000, MinRate: 1})
	s.each = func() { s.noise(50_000) }
	s.want(second, "")
	before, followed := heapInUse(), len(s.tracks)
	s.want(2*second, "") // a million
	if grown := heapInUse() - before; grown > 200<<10 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	if n := len(s.tracks); n > followed+2*2*maxNames || s.Heat() != nil {
		t.Errorf("%d keys are followed, %d before, and %d are hot", n, followed, s.Heat().Len())
	}
}

// Keys of 250 bytes that differ in the last are told apart everywhere.
func TestLongestKeys(t *testing.T) {
	long := strings.Repeat("x", maxKey-1)
	s := newTraffic(t, 1, Config{Servers: 8})
	s.each = func() {
		s.request(long+"a", 200)
		s.request(long+"b", 100)
		s.move(long+"a", 300*kib)
		s.move(long+"b", 400*kib)
	}
	s.run(3 * second)
	r := s.Report(2)
	if r.Keys[0].Key != long+"a" || r.Keys[1].Key != long+"b" || r.Large[0].Key != long+"b" || r.Large[1].Key != long+"a" {
		t.Errorf("%+v", r)
	}
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second})
	d.store(long+"a", "va")
	d.store(long+"b", "vb")
	d.has(long+"a", "va")
	d.has(long+"b", "vb")
	if d.store(long+"ab", "v") {
		t.Error("a key that no server takes is kept")
	}
}

// A hot key that is deleted and set in a loop stays hot, for its writes, and the near
// cache has what was set last or nothing.
func TestHotKeyDeletedAndSetInALoop(t *testing.T) {
	epochs := epoch.New(0)
	d := newNearDesk(t, NearConfig{Bytes: 4096, TTL: second, Epochs: epochs})
	k := hashOfString("k")
	write := func() {
		epochs.Began(k)
		d.has("k", "") // while the write is on its way
		epochs.Ended(k)
		d.has("k", "")
	}
	s := newTraffic(t, 1, Config{Servers: 8})
	n := 0
	s.each = func() {
		s.noise(1000)
		for range 50 {
			n++
			write() // a delete
			late := d.Begin(k, d.now)
			write() // a set
			if d.Fill(late, []byte("k"), []byte("from before")) {
				t.Fatal("a value from before a set is kept")
			}
			d.store("k", strconv.Itoa(n))
			d.has("k", strconv.Itoa(n))
			s.request("k", 2)
			s.counters[0].Wrote(k)
			s.counters[0].Wrote(k)
		}
	}
	s.want(2*second, "k cold->severe")
	s.want(10*second, "")
	if key := s.Report(1).Keys[0]; key.Writes < 0.98*1000 || key.Reads > 20 {
		t.Errorf("%v writes and %v reads a second, want 1000 and none", key.Writes, key.Reads)
	}
}

// A value larger than the whole cache is not kept, and costs nobody a place.
func TestNearSmallerThanOneValue(t *testing.T) {
	d := newNearDesk(t, NearConfig{Bytes: 4096, MaxValue: 1 << 20, TTL: second})
	d.store("small", "value")
	for _, size := range []int{4096 - maxKey + 1, 4096, 1 << 20} {
		if d.store("k", strings.Repeat("x", size)) {
			t.Errorf("%d bytes are kept in 4096", size)
		}
		d.has("k", "")
	}
	d.has("small", "value")
	largest := strings.Repeat("x", 4096-maxKey)
	d.now = time.Millisecond
	d.store("k", largest)
	d.has("k", largest)
}
