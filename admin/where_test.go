package admin

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"cacherouter/router"
)

func TestKeyOf(t *testing.T) {
	f := func(query, want, wrong string) {
		t.Helper()
		got, err := keyOf(query)
		if wrong == "" && (err != nil || got != want) {
			t.Errorf("%.40q: %q, %v, want %q", query, got, err, want)
		}
		if wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%.40q: %q, %v, want an error with %q", query, got, err, wrong)
		}
	}
	f("key=user%3A42", "user:42", "")
	f("key=%00%FF%0D%0A", "\x00\xff\r\n", "")
	f("key=a+b", "a b", "")
	f("quoted="+url.QueryEscape(`\x00\xff\r\n\\\"`), "\x00\xff\r\n\\\"", "")
	f("key="+strings.Repeat("%FF", 250), strings.Repeat("\xff", 250), "")
	f("key="+strings.Repeat("k", 251), "", "251 bytes")
	f("key="+strings.Repeat("k", 1<<20), "", "1048580 bytes")
	f("", "", "?key=KEY")
	f("key=", "", "empty")
	f("key=a&key=b", "", "one of")
	f("key=a&quoted=b", "", "one of")
	f("key=%zz", "", "%zz")
	f("quoted="+url.QueryEscape(`\q`), "", "backslash")
	f("quoted="+url.QueryEscape(`"`), "", "backslash")
}

// Whatever a key may be is shown as it would be written in a list of hot keys, and found
// again from there.
func TestKeysComeBack(t *testing.T) {
	for _, key := range []string{"user:42", "\x00\xff\r\n", `a"b\c`, "<script>alert(1)</script>", "ключ", "\u202e", strings.Repeat("\xfe", 250)} {
		got, err := keyOf("quoted=" + url.QueryEscape(printable(key)))
		if err != nil || got != key {
			t.Errorf("%q is shown as %q, which is %q, %v", key, printable(key), got, err)
		}
	}
}

func TestWhere(t *testing.T) {
	r := newIdle(3)
	s := New(Config{Router: r, Local: true})
	where := func() (w Where) {
		t.Helper()
		answer := asked(s, "GET", "/api/v1/where?key=k")
		if err := json.Unmarshal(answer.Body.Bytes(), &w); answer.Code != 200 || err != nil {
			t.Fatalf("%d %s %v", answer.Code, answer.Body, err)
		}
		return w
	}
	well := where()
	if well.Reads != well.Home || well.Writes != well.Home || len(well.Candidates) != 3 || well.Candidates[0].Server != well.Home || len(well.Why) != 1 {
		t.Errorf("all well: %+v", well)
	}
	home := r.table.Picker.Pick(nil, r.table.KeyHash([]byte("k")), 1)[0]
	change := func(f func(t *router.Table)) {
		next := *r.table
		next.Servers = append([]router.Server(nil), r.table.Servers...)
		f(&next)
		r.table = &next
	}
	change(func(t *router.Table) {
		t.Servers[home].Reads, t.Servers[home].Writes = router.ReadNext, router.WriteNowhere
	})
	if w := where(); w.Home != well.Home || w.Reads != well.Candidates[1].Server || w.Writes != "" || len(w.Why) != 3 {
		t.Errorf("home away: %+v", w)
	}
	change(func(t *router.Table) { t.Servers[home].Writes = router.WriteNext })
	if w := where(); w.Writes != well.Candidates[1].Server {
		t.Errorf("writes fail over: %+v", w)
	}
	change(func(t *router.Table) {
		last := router.Placement{Picker: slices2(1)}
		t.Before, t.Until, t.After = last, time.Now().Add(time.Minute), []router.Placement{last}
	})
	if w := where(); home != 0 && (w.Before != "s00000" || w.After != "s00000") {
		t.Errorf("in a hand-over: %+v", w)
	}
	wants(t, asked(s, "GET", "/api/v1/where"), 400, "key")
}
