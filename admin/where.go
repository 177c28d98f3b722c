package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cacherouter/memproto"
	"cacherouter/router"
)

// Where is what /api/v1/where says: which servers a key is on at this moment, and why.
type Where struct {
	// Key is the key, as hot keys are written.
	Key string `json:"key"`
	// Pool is the key's, and Route the prefix that says so, if there are several.
	Pool  string `json:"pool,omitempty"`
	Route string `json:"route,omitempty"`
	// Hash is its hash in hexadecimal.
	Hash string `json:"hash"`
	// Home is the server that the placement names. Reads and Writes are where a plain get and
	// a set go now; Writes is empty where they are refused.
	Home   string `json:"home"`
	Reads  string `json:"reads"`
	Writes string `json:"writes"`
	// Candidates are the servers in the key's own order, home first.
	Candidates []Candidate `json:"candidates"`
	// Before is its home before the last change, while that is asked too, and After the one
	// to come within seconds; empty where that is Home, or nothing changes.
	Before string `json:"home_before,omitempty"`
	After  string `json:"home_after,omitempty"`
	// Hot is there if the key stands out.
	Hot *HotKey `json:"hot,omitempty"`
	// Why explains it in sentences.
	Why []string `json:"why"`
}

// Candidate is one server that a key may be on.
type Candidate struct {
	Server  string `json:"server"`
	Address string `json:"address"`
	// Copy says that the key's items live here too, home included.
	Copy bool `json:"copy"`
	// Reads and Writes say whether those go here if it is the key's home: here, one (one at a
	// time), next; here, nowhere, next.
	Reads  string `json:"reads"`
	Writes string `json:"writes"`
	// Load is the units in flight, Bound how many there may be; 0 if there is no bound.
	Load  int `json:"load"`
	Bound int `json:"bound"`
}

// minCandidates is how many servers are shown at least, if there are as many.
const minCandidates = 3

// where answers GET /api/v1/where?key=KEY, or ?quoted=KEY for one as hot keys are written.
func (s *Server) where(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, s.whereIs(key))
}

var (
	errNoKey    = errors.New("key: want ?key=KEY, with every byte that is no letter or digit as %XX, or ?quoted=KEY as hot keys are written")
	errTwoKeys  = errors.New("key: want one of key and quoted")
	errEmptyKey = errors.New("key: is empty: want 1 to 250 bytes")
)

// keyOf takes the key from a query.
func keyOf(query string) (string, error) {
	if len(query) > 8*memproto.MaxKey { // the most that escaping makes of it, with room
		return "", fmt.Errorf("key: the query has %d bytes: want a key of at most %d", len(query), memproto.MaxKey)
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	plain, quoted := q["key"], q["quoted"]
	switch {
	case len(plain)+len(quoted) == 0:
		return "", errNoKey
	case len(plain)+len(quoted) > 1:
		return "", errTwoKeys
	}
	var key string
	if len(plain) > 0 {
		key = plain[0]
	} else if key, err = strconv.Unquote(`"` + quoted[0] + `"`); err != nil {
		return "", fmt.Errorf("quoted: %.60q is not as hot keys are written: a backslash begins an escape such as \\x00, \\n, \\\\ or \\\"", quoted[0])
	}
	switch {
	case key == "":
		return "", errEmptyKey
	case len(key) > memproto.MaxKey:
		return "", fmt.Errorf("key: has %d bytes: memcached takes at most %d", len(key), memproto.MaxKey)
	}
	return key, nil
}

// whereIs says where a key is.
func (s *Server) whereIs(key string) Where {
	t := s.cfg.Router.Table()
	own, target := key, router.Target{}
	if s.cfg.Target != nil {
		if t := s.cfg.Target(key); t.Pool != "" && (s.cfg.Pool == "" || t.Pool == s.cfg.Pool) {
			key, target = t.Known, t
		}
	}
	hash := t.KeyHash([]byte(key))
	depth := 0
	if t.Bound != nil && t.Spill != router.SpillNone {
		depth = t.Bound.Depth()
	}
	copies := max(1, t.Copies)
	picks := t.Picker.Pick(nil, hash, max(minCandidates, depth+1, copies))
	out := Where{Key: printable(own), Hash: fmt.Sprintf("%016x", hash), Home: t.Servers[picks[0]].Name, Why: []string{}, Pool: s.cfg.Pool}
	for rank, i := range picks {
		out.Candidates = append(out.Candidates, candidateOf(t, i, rank < copies))
	}
	if t.Before.Picker != nil && time.Now().Before(t.Until) {
		out.Before = other(t, &t.Before, key, hash, out.Home)
	}
	for i := range t.After {
		out.After = cmp.Or(out.After, other(t, &t.After[i], key, hash, out.Home))
	}
	out.Route = target.Prefix
	if key != own {
		out.Why = append(out.Why, fmt.Sprintf("Servers know it as %s.", printable(key)))
	}
	out.explain(s, t, picks, hash, depth)
	return out
}

func candidateOf(t *router.Table, i int, isCopy bool) Candidate {
	server := &t.Servers[i]
	c := Candidate{
		Server: server.Name, Address: server.Address, Copy: isCopy,
		Reads:  [...]string{"here", "one", "next"}[server.Reads],
		Writes: [...]string{"here", "nowhere", "next"}[server.Writes],
	}
	if t.Bound != nil {
		c.Load, c.Bound = t.Bound.InFlight(i), t.Bound.Cap(i)
	}
	return c
}

// other is the home of a key in another placement, empty if it is the same.
func other(t *router.Table, p *router.Placement, key string, hash uint64, home string) string {
	if name := t.Servers[p.Order(nil, []byte(key), hash, 1)[0]].Name; name != home {
		return name
	}
	return ""
}

// explain says where reads and writes go, and why.
func (o *Where) explain(s *Server, t *router.Table, picks []int, hash uint64, depth int) {
	say := func(format string, args ...any) { o.Why = append(o.Why, fmt.Sprintf(format, args...)) }
	say("The placement puts it on %s.", o.Home)
	next := func(bad func(*router.Server) bool) string {
		for _, i := range picks[1:] {
			if !bad(&t.Servers[i]) {
				return t.Servers[i].Name
			}
		}
		return ""
	}
	home := &t.Servers[picks[0]]
	o.Reads, o.Writes = o.Home, o.Home
	switch home.Reads {
	case router.ReadNext:
		o.Reads = next(func(x *router.Server) bool { return x.Reads == router.ReadNext })
		say("%s cannot be used now: reads go to the next server in the key's own order.", o.Home)
	case router.ReadOne:
		say("%s is tried again: reads go to it one at a time, others to the next server.", o.Home)
	}
	switch home.Writes {
	case router.WriteNowhere:
		o.Writes = ""
		say("Writes are refused: %s cannot be reached from here, and other routers may still read from it.", o.Home)
	case router.WriteNext:
		o.Writes = next(func(x *router.Server) bool { return x.Writes != router.WriteHere })
		say("Writes go to the next server for a bounded time, and %s is told when it is back.", o.Home)
	}
	if t.Copies > 1 {
		say("Its items live on %d servers: writes go to all of them, reads to the one with the least to do.", t.Copies)
	}
	if o.Before != "" {
		say("Until %s a miss is asked of %s, where it lived before.", t.Until.Format(time.TimeOnly), o.Before)
	}
	if o.After != "" {
		say("Within seconds its home will be %s.", o.After)
	}
	o.heat(s, t, hash, depth, say)
}

// heat says what is done with a key that is hot.
func (o *Where) heat(s *Server, t *router.Table, hash uint64, depth int, say func(string, ...any)) {
	if c := o.Candidates[0]; depth > 0 && c.Bound > 0 && c.Load >= c.Bound {
		say("%s is at its bound: reads of hot keys go to the next %d servers.", o.Home, depth)
	}
	if s.cfg.HotKeys == nil {
		return
	}
	report := s.cfg.HotKeys(maxHotKeys)
	if report == nil {
		return
	}
	for i := range report.Keys {
		if report.Keys[i].Hash == hash {
			h := hotKeyOf(&report.Keys[i], o.Home)
			o.Hot = &h
			say("It has %.1f %% of the requests, and is %s.", 100*h.Share, h.Level)
		}
	}
}
