package hotkey

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	second = time.Second
	tick   = second / 10
)

// traffic is a simulated router: loops with counters, and a collector, in virtual time.
type traffic struct {
	t        *testing.T
	now      time.Duration
	counters []*Counter
	samples  []*Sample
	*Collector
	each func() // makes the traffic of one tick
	log  []string
}

func newTraffic(t *testing.T, loops int, c Config) *traffic {
	t.Helper()
	collector, err := NewCollector(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &traffic{t: t, Collector: collector}
	for i := range loops {
		s.counters = append(s.counters, NewCounter(uint64(1000+i)))
		s.samples = append(s.samples, new(Sample))
	}
	s.Collect(nil, 0)
	return s
}

// request counts n requests on a key, spread over the loops.
func (s *traffic) request(key string, n int) {
	for i := range n {
		s.counters[i%len(s.counters)].Touch(hashOfString(key), []byte(key))
	}
}

func hashOfString(key string) (h uint64) {
	for i := range key {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	return h
}

// noise counts requests on keys that nobody asks for twice.
func (s *traffic) noise(n int) {
	key := [24]byte{'n', ':'}
	for i := range n {
		number := rand.Uint64()
		s.counters[i%len(s.counters)].Touch(number, strconv.AppendUint(key[:2], number, 10))
	}
}

// run lets time pass and returns what has changed.
func (s *traffic) run(d time.Duration) string {
	var log []string
	for end := s.now + d; s.now < end; {
		s.now += tick
		if s.each != nil {
			s.each()
		}
		for i, c := range s.counters {
			c.Sample(s.samples[i], s.now)
		}
		for _, c := range s.Collect(s.samples, s.now) {
			log = append(log, fmt.Sprintf("%s %v->%v", c.Key, c.From, c.To))
			s.log = append(s.log, fmt.Sprintf("%v %s", s.now, log[len(log)-1]))
		}
	}
	return strings.Join(log, ", ")
}

func (s *traffic) want(d time.Duration, changes string) {
	s.t.Helper()
	if diff := cmp.Diff(changes, s.run(d)); diff != "" {
		s.t.Fatalf("until %v: %s", s.now, diff)
	}
}

func TestHotKeyComesAndGoes(t *testing.T) {
	s := newTraffic(t, 2, Config{Servers: 8})
	s.each = func() { s.noise(2000) }
	s.want(5*second, "")
	s.each = func() { s.noise(1900); s.request("k", 100) } // 5 %, the limit is 3.1 %
	s.want(2*second, "k cold->hot")
	if s.Heat().Level(hashOfString("k")) != Hot || s.Heat().Len() != 1 {
		t.Errorf("%d hot keys", s.Heat().Len())
	}
	s.want(10*second, "")
	s.each = func() { s.noise(1000); s.request("k", 1000) }
	s.want(2*second, "k hot->severe")
	s.want(10*second, "")
	s.each = func() { s.noise(2000) }
	s.run(10 * second)
	if s.Heat().Level(hashOfString("k")) != Cold {
		t.Errorf("10 s after it cooled the key is %v", s.Heat().Level(hashOfString("k")))
	}
	if diff := cmp.Diff(4, len(s.log)); diff != "" {
		t.Errorf("changes %q", s.log)
	}
	if slices.ContainsFunc(s.Report(1000).Keys, func(k Key) bool { return k.Key == "k" }) {
		t.Error("10 s after it cooled the key is reported still")
	}
}

// What is hot stays hot while it is above half of the limit.
func TestHysteresis(t *testing.T) {
	s := newTraffic(t, 1, Config{Servers: 8})
	share := 0
	s.each = func() { s.noise(2000 - share); s.request("k", share) }
	share = 100 // 5 %
	s.want(2*second, "k cold->hot")
	share = 40 // 2 %, the limit is 3.1 %
	s.want(20*second, "")
	share = 24 // 1.2 %
	s.want(4*second, "")
	share = 40 // in time
	s.want(10*second, "")
	share = 24
	s.want(8*second, "k hot->cold")
	share = 40
	s.want(20*second, "")
}

// A burst within one tick makes nothing hot.
func TestBurst(t *testing.T) {
	s := newTraffic(t, 1, Config{Servers: 8, Smooth: 50 * time.Millisecond})
	n := 0
	s.each = func() {
		s.noise(2000)
		if n++; n == 20 {
			s.request("k", 500)
		}
	}
	s.want(5*second, "")
}

// A quiet router has no hot keys, however the shares are.
func TestFewRequests(t *testing.T) {
	s := newTraffic(t, 1, Config{})
	s.each = func() { s.request("k", 40) }
	s.want(5*second, "")
	s.each = func() { s.request("k", 100) }
	s.want(2*second, "k cold->severe")
	s.each = nil // all traffic stops, and the share stays what it was
	s.want(10*second, "k severe->cold")
}

func TestHotByBytes(t *testing.T) {
	s := newTraffic(t, 2, Config{Servers: 8})
	s.each = func() {
		s.noise(2000)
		s.request("video:1", 5)
		for i := range 5 {
			s.counters[i%2].Moved(hashOfString("video:1"), []byte("video:1"), 500_000)
		}
		for range 2000 {
			n := rand.Uint64()
			s.counters[n%2].Moved(n, []byte("n"), 1000)
		}
	}
	s.want(2*second, "video:1 cold->severe")
	r := s.Report(3)
	if len(r.ByBytes) == 0 || r.ByBytes[0].Key != "video:1" || math.Abs(r.ByBytes[0].Bytes-25e6) > 1e6 {
		t.Errorf("by bytes: %+v", r.ByBytes)
	}
	if share := r.ByBytes[0].BytesShare; math.Abs(share-25.0/45) > 0.02 {
		t.Errorf("its share is %v", share)
	}
}

func TestReport(t *testing.T) {
	s := newTraffic(t, 3, Config{Servers: 8})
	s.each = func() {
		s.noise(1000)
		s.request("user:1", 400)
		s.request("user:2", 300)
		s.request("plain", 200)
		for i := range 99 {
			s.counters[i%3].Wrote(hashOfString("user:2"))
		}
	}
	s.run(10 * second)
	r := s.Report(2)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	if len(r.Keys) != 2 || r.Keys[0].Key != "user:1" || r.Keys[1].Key != "user:2" || r.Hot != 3 {
		t.Fatalf("%+v", r)
	}
	near("rate of all", r.Rate, 19000)
	near("rate", r.Keys[0].Rate, 4000)
	near("share", r.Keys[0].Share, 4.0/19)
	near("reads", r.Keys[1].Reads, 3000-990)
	near("writes", r.Keys[1].Writes, 990)
	near("top share", r.TopShare, 4.0/19)
	if len(r.Prefixes) != 2 {
		t.Errorf("%d prefixes, want 2", len(r.Prefixes))
	}
	if trend := r.Keys[0].Trend; trend < 0 || trend > 0.2 {
		t.Errorf("trend of a steady key: %v", trend)
	}
	near("rate of users", r.Prefixes[0].Rate, 7000)
	if p := r.Prefixes[0]; p.Prefix != "user:" || p.Keys != 2 {
		t.Errorf("prefix %+v", p)
	}
	s.each = func() { s.noise(1000); s.request("new", 400) }
	s.run(second)
	for _, k := range s.Report(10).Keys {
		switch {
		case k.Key == "new" && k.Trend < 0.5, k.Key == "user:1" && k.Trend > -0.5:
			t.Errorf("%s has trend %v", k.Key, k.Trend)
		}
	}
}

func TestManyHotKeys(t *testing.T) {
	s := newTraffic(t, 1, Config{Servers: 1000})
	s.each = func() {
		for i := range 100 {
			s.request(fmt.Sprintf("k%d", i), 100)
		}
	}
	s.run(2 * second)
	for i := range 100 {
		if s.Heat().Level(hashOfString(fmt.Sprintf("k%d", i))) == Cold {
			t.Errorf("k%d is cold", i)
		}
	}
	if s.Heat().Len() != 100 || s.Heat().Level(12345) != Cold {
		t.Errorf("%d are hot", s.Heat().Len())
	}
	s.SetServers(1) // now none has a quarter of the traffic
	s.run(10 * second)
	if s.Heat().Len() != 0 {
		t.Errorf("%d are hot", s.Heat().Len())
	}
	s.each = nil
	s.run(20 * second)
	if len(s.tracks) != 0 {
		t.Errorf("%d are followed still", len(s.tracks))
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{Servers: -1}, {LargeValue: 1000}, {Hot: -1}, {Hot: 0.5, Severe: 0.1}, {Hot: math.NaN()}, {MinShare: 2}, {MinRate: -1},
		{MinBytes: -1}, {EnterTicks: 4}, {Leave: 1}, {LeaveAfter: -1}, {Smooth: -1},
	} {
		if _, err := NewCollector(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func BenchmarkHeat(b *testing.B) {
	levels := make(map[uint64]Level)
	for i := range 20 {
		levels[hashOf(i)] = Hot
	}
	h, i := newHeat(levels), 0
	for b.Loop() {
		i++
		h.Level(hashOf(i))
	}
}

func BenchmarkCollect(b *testing.B) {
	c, err := NewCollector(Config{})
	if err != nil {
		b.Fatal(err)
	}
	var samples []*Sample
	for loop := range 2 {
		counter, z := NewCounter(uint64(loop)), newZipf(0.99, population, 5)
		for range 1 << 18 {
			n := z.draw()
			counter.Touch(hashOf(n), keyOf(nil, n))
		}
		samples = append(samples, new(Sample))
		counter.Sample(samples[loop], 0)
	}
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += tick
		c.Collect(samples, now)
	}
}
