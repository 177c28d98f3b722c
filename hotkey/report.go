package hotkey

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Key is what is known of one outstanding key. Rates are a second, smoothed.
type Key struct {
	Key    string
	Hash   uint64
	Level  Level
	For    time.Duration // how long it has had its level
	Rate   float64       // requests
	Share  float64       // of all requests, 0 to 1
	Reads  float64       // requests that are no writes
	Writes float64       // requests that are writes
	Bytes  float64       // of values, both ways
	// BytesShare is the share of all bytes, 0 to 1.
	BytesShare float64
	// Elsewhere is what other routers say, once Peers.Join has been called.
	Elsewhere Elsewhere
	// Trend is between -1 and 1: how the rate compares with one that is smoothed over ten
	// times as long. 1 is new, 0 is steady, -1 has stopped.
	Trend float64
}

// Prefix sums up the outstanding keys that begin alike.
type Prefix struct {
	Prefix string // up to and with the first delimiter; "" for keys without one
	Keys   int
	Rate   float64 // requests a second
	Share  float64 // of all requests, 0 to 1
	Bytes  float64 // a second
}

// Report is what a Collector knows at one time. It is the caller's.
type Report struct {
	Rate     float64  // requests a second, of all keys
	Bytes    float64  // a second
	Hot      int      // keys that are hot or severe
	TopShare float64  // of the requests, that the key with the most has, 0 to 1
	Keys     []Key    // by rate, the highest first
	ByBytes  []Key    // by bytes, the highest first
	Prefixes []Prefix // of all outstanding keys, by rate
	Large    []Large  // keys with large values, by size
}

// Report returns the top keys by requests, by bytes and by size, and the top prefixes, at
// most k each. Prefixes do not count the many keys that are not outstanding.
func (c *Collector) Report(k int) *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Report{Rate: c.all.requests.fast, Bytes: c.all.bytes.fast, Hot: c.heat.Load().Len()}
	prefixes := make(map[string]*Prefix)
	for _, t := range c.tracks {
		r.Keys = append(r.Keys, c.describe(t))
		c.roll(prefixes, t)
		r.TopShare = max(r.TopShare, share(t.requests.fast, c.all.requests.fast))
	}
	r.ByBytes = slices.Clone(r.Keys)
	r.Keys = top(r.Keys, k, func(k *Key) float64 { return k.Rate })
	r.ByBytes = top(r.ByBytes, k, func(k *Key) float64 { return k.Bytes })
	r.Prefixes = c.reportPrefixes(prefixes, k)
	r.Large = c.reportLarge(k)
	return r
}

// reportPrefixes returns the k prefixes with the highest rates, in order.
func (c *Collector) reportPrefixes(prefixes map[string]*Prefix, k int) (all []Prefix) {
	for _, p := range prefixes {
		p.Share = share(p.Rate, c.all.requests.fast)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Prefix) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Prefix, b.Prefix))
	})
	return all[:min(k, len(all))]
}

func (c *Collector) describe(t *track) Key {
	return Key{
		Key:        t.key,
		Hash:       t.hash,
		Level:      t.level,
		For:        c.last - t.since,
		Rate:       t.requests.fast,
		Share:      share(t.requests.fast, c.all.requests.fast),
		Reads:      max(0, t.requests.fast-t.writes.fast),
		Writes:     t.writes.fast,
		Bytes:      t.bytes.fast,
		BytesShare: share(t.bytes.fast, c.all.bytes.fast),
		Trend:      t.requests.trend(),
	}
}

// roll adds a key to its prefix.
func (c *Collector) roll(prefixes map[string]*Prefix, t *track) {
	name := t.key[:strings.IndexByte(t.key, c.cfg.Delimiter)+1]
	p := prefixes[name]
	if p == nil {
		p = &Prefix{Prefix: name}
		prefixes[name] = p
	}
	p.Keys++
	p.Rate += t.requests.fast
	p.Bytes += t.bytes.fast
}

// top returns the k keys with the largest values, in order, without those that have
// none.
func top(keys []Key, k int, value func(*Key) float64) []Key {
	keys = slices.DeleteFunc(keys, func(k Key) bool { return value(&k) <= 0 })
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(value(&b), value(&a)), strings.Compare(a.Key, b.Key))
	})
	return keys[:min(k, len(keys))]
}
