package admin

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"cacherouter/hotkey"
	"cacherouter/router"
)

// HotKeys is what /api/v1/hotkeys says: the keys that stand out here. Rates are a second.
type HotKeys struct {
	Rate     float64     `json:"rate"`
	Bytes    float64     `json:"bytes"`
	Hot      int         `json:"hot"`       // keys that are hot or severe
	TopShare float64     `json:"top_share"` // of the requests, that the first key has
	Keys     []HotKey    `json:"keys"`      // by requests
	ByBytes  []HotKey    `json:"by_bytes"`
	Prefixes []HotPrefix `json:"prefixes"`
	Large    []LargeKey  `json:"large"`
}

// HotKey is one key that stands out.
type HotKey struct {
	Key    string  `json:"key"`    // as a Go string literal would have it, without quotes
	Server string  `json:"server"` // its home
	Level  string  `json:"level"`  // cold, hot, severe
	For    float64 `json:"for"`    // seconds
	Rate   float64 `json:"rate"`
	Share  float64 `json:"share"`
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	Bytes  float64 `json:"bytes"`
	Trend  float64 `json:"trend"` // 1 is new, 0 is steady, -1 has stopped
	// Routers is how many others name the key too, ElsewhereRate what it has there.
	Routers       int     `json:"routers"`
	ElsewhereRate float64 `json:"elsewhere_rate"`
}

// HotPrefix sums up the keys that begin alike.
type HotPrefix struct {
	Prefix string  `json:"prefix"`
	Keys   int     `json:"keys"`
	Rate   float64 `json:"rate"`
	Share  float64 `json:"share"`
	Bytes  float64 `json:"bytes"`
}

// LargeKey is a key with a large value.
type LargeKey struct {
	Key    string  `json:"key"`
	Server string  `json:"server"`
	Size   int     `json:"size"` // bytes
	Rate   float64 `json:"rate"`
}

// Limits of how many keys may be asked for.
const (
	defaultHotKeys = 20
	maxHotKeys     = 255
)

// hotKeys answers GET /api/v1/hotkeys?k=20.
func (s *Server) hotKeys(w http.ResponseWriter, r *http.Request) {
	k, ok := numberOf(w, r, "k", defaultHotKeys, maxHotKeys)
	if !ok {
		return
	}
	report := s.cfg.HotKeys(k)
	if report == nil {
		http.Error(w, "keys are not counted: pool.hot.enabled is false", http.StatusNotFound)
		return
	}
	reply(w, hotKeysOf(report, s.cfg.Router.Table()))
}

func hotKeysOf(r *hotkey.Report, t *router.Table) HotKeys {
	h := HotKeys{
		Rate: r.Rate, Bytes: r.Bytes, Hot: r.Hot, TopShare: r.TopShare,
		Keys: []HotKey{}, ByBytes: []HotKey{}, Prefixes: []HotPrefix{}, Large: []LargeKey{},
	}
	home := func(hash uint64) string { return t.Servers[t.Picker.Pick(nil, hash, 1)[0]].Name }
	describe := func(k *hotkey.Key) HotKey { return hotKeyOf(k, home(k.Hash)) }
	for i := range r.Keys {
		h.Keys = append(h.Keys, describe(&r.Keys[i]))
	}
	for i := range r.ByBytes {
		h.ByBytes = append(h.ByBytes, describe(&r.ByBytes[i]))
	}
	for _, p := range r.Prefixes {
		h.Prefixes = append(h.Prefixes, HotPrefix{printable(p.Prefix), p.Keys, p.Rate, p.Share, p.Bytes})
	}
	for _, l := range r.Large {
		h.Large = append(h.Large, LargeKey{printable(l.Key), home(l.Hash), l.Size, l.Rate})
	}
	return h
}

func hotKeyOf(k *hotkey.Key, home string) HotKey {
	return HotKey{
		Key: printable(k.Key), Server: home, Level: k.Level.String(), For: k.For.Round(time.Millisecond).Seconds(),
		Rate: k.Rate, Share: k.Share, Reads: k.Reads, Writes: k.Writes, Bytes: k.Bytes, Trend: k.Trend,
		Routers: k.Elsewhere.Routers, ElsewhereRate: k.Elsewhere.Rate,
	}
}

// printable returns a key as it can be shown: what is no letter is escaped.
func printable(key string) string {
	if utf8.ValidString(key) {
		q := strconv.Quote(key)
		return q[1 : len(q)-1]
	}
	q := strconv.QuoteToASCII(key)
	return q[1 : len(q)-1]
}
