package mcrouter

import "fmt"

// note notes something about a value, once.
func (p *planner) note(at *value, format string, args ...any) {
	n := Note{Line: at.line, Path: at.path, Text: fmt.Sprintf(format, args...)}
	if !p.noted[n] {
		p.noted[n] = true
		p.plan.Notes = append(p.plan.Notes, n)
	}
}

// noteUnseen notes what nobody has seen to in a value, so that nothing of the file is left out without a word.
func (p *planner) noteUnseen(v *value) {
	switch pools, named := p.root.get("pools"), p.root.get("named_handles"); {
	case v == pools || v == named:
		for _, item := range v.items {
			p.noteUnused(item)
		}
		for _, f := range v.fields {
			p.noteUnused(f.value)
		}
		return
	}
	for _, item := range v.items {
		if !item.seen {
			p.note(item, "has no counterpart")
			continue
		}
		p.noteUnseen(item)
	}
	for _, f := range v.fields {
		if !f.value.seen {
			p.noteField(f)
			continue
		}
		p.noteUnseen(f.value)
	}
}

// noteUnused notes a pool or a handle that is not used, or what is unseen in it.
func (p *planner) noteUnused(v *value) {
	if v.seen {
		p.noteUnseen(v)
		return
	}
	p.note(v, "no route leads here: it is left out")
}

// noteField notes a field that has no counterpart.
func (p *planner) noteField(f field) {
	why := reasons[f.name]
	if why == "" {
		p.note(f.value, "has no counterpart")
		return
	}
	p.note(f.value, "has no counterpart: %s", why)
}

// reasons say what holds instead of some fields.
var reasons = map[string]string{
	"asynclog":                "deletes that a server missed are made up for from a journal; see consistency.md",
	"cluster":                 "no timeout depends on where servers are",
	"enable_compression":      "values are passed on as they are",
	"enable_lease_pairing":    "leases are misses that clients wait for; see hotkeys.md",
	"failover_errors":         "a server fails over when it is out, not for a single error; see membership.md",
	"failover_limit":          "a server fails over when it is out, not for a single error; see membership.md",
	"failover_policy":         "servers of the spare pool take over by the placement of keys there",
	"failover_tag":            "keys are the same on spare servers",
	"failure_domains":         "only zones are known; see routes.md",
	"hostnames":               "servers are named by their addresses",
	"index_range_rv":          "nothing is read from a file of variables",
	"key_fraction_range_rv":   "nothing is read from a file of variables",
	"max_outstanding":         "see pool.bound",
	"modify_inplace":          "keys are not cut",
	"port_override_cross_dc":  "addresses are taken as they are",
	"port_override_within_dc": "addresses are taken as they are",
	"qos":                     "packets are not marked",
	"rates":                   "see rate and burst of routes, which count requests of all kinds",
	"region":                  "no timeout depends on where servers are",
	"security_mech_cross_dc":  "no security depends on where servers are",
	"security_mech_within_dc": "no security depends on where servers are",
	"set_key_suffix":          "nothing is put behind keys",
	"shadow_policy":           "there is one",
	"shard_splits":            "hot keys are found and spread by themselves; see hotkeys.md",
	"slow_warmup":             "a server that returns is tried with one read at a time first; see membership.md",
	"tags":                    "they belong to hash functions that have no counterpart",
	"tko_tracker":             "how many servers may be out is bounded by membership; see configuration.md",
}
