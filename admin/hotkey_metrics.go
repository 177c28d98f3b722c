package admin

import "cacherouter/hotkey"

var hotKeyMetrics = newGroup("", nil,
	gauge("hot_keys", "Keys that are hot.", func(r *hotkey.Report) float64 { return float64(r.Hot) }),
	gauge("hot_key_top_share", "Share of all requests that the most frequent key has, 0 to 1.", func(r *hotkey.Report) float64 { return r.TopShare }),
)
