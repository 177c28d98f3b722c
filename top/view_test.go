package top

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cacherouter/admin"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hostile is what a client may call its keys, and worse: sequences that steer terminals, by
// seven bits and by eight, and characters that are wide, combine, or turn the direction.
const hostile = "\x1b[2J\x1b]0;owned\x07\r\n\x00\u009b31m\x9b31m\u202ereversed\u4e16\u0301\\x1b"

// viewOf shows a router that has so many servers, of which events name 50 at most.
func viewOf(servers int) *View {
	p99, hits := 0.00123, 0.973
	e := &admin.Event{Overview: admin.Overview{
		At: noon, Started: noon.Add(-3 * time.Hour), Router: "r1", Level: "well", Sentence: "All is well.",
		Requests: 128345.6, HitRatio: &hits, P99: &p99, Failed: 0.04, Clients: 512,
	}}
	e.Servers.Total = servers
	for i := range min(servers, 50) {
		e.Servers.Servers = append(e.Servers.Servers, admin.ServerLoad{
			Name: fmt.Sprintf("cache-%02d", i), Status: "in", Health: "up", Load: i, Bound: 40, Requests: float64(i), KeyShare: 1 / float64(servers), P99: &p99,
		})
	}
	e.HotKeys = &admin.HotKeys{Keys: []admin.HotKey{
		{Key: "user:1", Server: "cache-01", Level: "severe", Rate: 20000, Share: 0.2, Trend: 1}, {Key: hostile, Server: hostile, Level: hostile, Trend: -1},
	}}
	e.Routers = &admin.Routers{Known: 2, Present: 2, Routers: []admin.Peer{
		{Name: "r1", Kind: "self", Present: true, Votes: true, Agrees: true}, {Name: "r2", Kind: "router", Present: true, Votes: true, Agrees: true},
	}}
	changes := []admin.Change{
		{At: noon, Level: "warn", What: "server state", Server: "cache-01", From: "up", To: "down", Reason: "3 failures", Details: map[string]string{"took": "5"}},
		{At: noon.Add(-24 * time.Hour), Level: "error", What: hostile, Reason: hostile},
	}
	return &View{Address: "127.0.0.1:11312", Event: e, Changes: changes, Heard: noon, Now: noon, Live: true}
}

// drawn returns a drawing as one text.
func drawn(v *View, width, height int) string { return strings.Join(v.Lines(width, height), "\n") }

// row returns the only line that begins with a word.
func row(t *testing.T, text, word string) (found string) {
	t.Helper()
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, word) {
			if found != "" {
				t.Errorf("%s is there twice", word)
			}
			found = l
		}
	}
	if found == "" {
		t.Errorf("no %q in\n%s", word, text)
	}
	return found
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestAllThatMattersFitsASmallTerminal(t *testing.T) {
	text := drawn(viewOf(3), 80, 24)
	contains(t, text, "r1 at 127.0.0.1:11312, up 3 h", "All is well.", "128,346", "97.3 %", "1.23 ms", "0.0", "512",
		"HOT KEYS 2", "CHANGES 2", "2 heard, all agree", "12:00:00 server state cache-01: up -> down, 3 failures took=5", "Feb 28", "q quits", "[all]")
	contains(t, row(t, text, "cache-02"), "2/40", " up ", " 2.0 ", "33.3 %", "1.23 ms", " 0\n")
	contains(t, row(t, text, "user:1"), "cache-01", "20,000", "20.0 %", "rising", "severe")
}

var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// TestDrawingKeepsToItsBounds: no line is too wide, there are not too many, and nothing but
// colours steers the terminal.
func TestDrawingKeepsToItsBounds(t *testing.T) {
	f := func(v *View, width, height int) {
		t.Helper()
		lines := v.Lines(width, height)
		if height > 0 && len(lines) != height {
			t.Errorf("%d lines of %d", len(lines), height)
		}
		for _, l := range lines {
			l = colour.ReplaceAllString(l, "")
			if utf8.RuneCountInString(l) > width {
				t.Errorf("%d columns of %d: %q", utf8.RuneCountInString(l), width, l)
			}
			if strings.ContainsFunc(l, func(r rune) bool { return (r < ' ' || r > '~') && !strings.ContainsRune("█░…", r) }) {
				t.Errorf("in %q is what steers terminals", l)
			}
		}
	}
	v := viewOf(60)
	for width := range 220 {
		for height := range 60 {
			v.Focus, v.Look = Focus(height%numFocus), Look{Color: width%2 == 0, Unicode: height%2 == 0}
			f(v, width, height)
		}
	}
	nasty := viewOf(3)
	o, s, r := &nasty.Event.Overview, &nasty.Event.Servers.Servers[0], &nasty.Event.Routers.Routers[0]
	o.Router, o.Sentence, o.Level, nasty.Address = hostile, strings.Repeat(hostile, 20), "trouble", hostile
	s.Name, s.Health, s.Why, s.Trouble, r.Name, r.Address, r.Kind = hostile, hostile, hostile, "trouble", hostile, hostile, hostile
	s.Load, s.Requests, s.Penalty = 1<<60, 1e300, -1<<60
	for i := range 9 {
		o.Problems = append(o.Problems, admin.Problem{Level: "trouble", Text: fmt.Sprint(i, hostile)})
	}
	for width := range 220 {
		f(nasty, width, 60)
	}
	nasty.Err = errors.New(hostile)
	f(nasty, 80, 24)
}

func TestHostileKeysCanBeReadAndPasted(t *testing.T) {
	text := drawn(viewOf(1), 200, 40)
	contains(t, text, `\x1b[2J\x1b]0;owned\a\r\n\x00\u009b31m\x9b31m\u202ereversed\u4e16\u0301\x1b`)
}

func TestServersAreCut(t *testing.T) {
	v := viewOf(10000)
	v.Event.Servers.Servers[7].Trouble, v.Event.Servers.Servers[7].Why = "warning", "is away"
	v.Event.Servers.Servers[8].Trouble, v.Event.Servers.Servers[8].Why = "trouble", "is gone"
	text := drawn(v, 120, 24)
	n := strings.Count(text, "\ncache-")
	contains(t, text, fmt.Sprintf("SERVERS %d of 10,000", n))
	contains(t, row(t, text, "cache-08"), "is gone")
	if n < 3 || strings.Index(text, "cache-08") > strings.Index(text, "cache-07") || strings.Index(text, "cache-07") > strings.Index(text, "cache-49") {
		t.Errorf("the worst are not the first:\n%s", text)
	}
	v.Focus = 1
	text = drawn(v, 120, 24)
	if more := strings.Count(text, "\ncache-"); more <= n || strings.Contains(text, "CHANGES") {
		t.Errorf("with all the room there are %d servers after %d:\n%s", more, n, text)
	}
	contains(t, drawn(v, 120, 0), "SERVERS 50 of 10,000")
}

func TestBarsAreOfTheLoad(t *testing.T) {
	f := func(load, bound, others, want int) {
		t.Helper()
		v := viewOf(2)
		s := v.Event.Servers.Servers
		s[0].Load, s[0].Bound, s[1].Load, s[1].Bound = load, bound, others, bound
		bar := regexp.MustCompile("[#.]{5,}").FindString(row(t, drawn(v, 80, 24), "cache-00"))
		if full := strings.Repeat("#", want) + strings.Repeat(".", minBar-want); bar != full {
			t.Errorf("a load of %d of %d: %s, want %s", load, bound, bar, full)
		}
	}
	f(0, 40, 0, 0)
	f(1, 400, 0, 1)
	f(20, 40, 0, 5)
	f(40, 40, 0, 10)
	f(400, 40, 0, 10)
	f(5, 0, 10, 5) // without a bound, of the highest
	f(0, 0, 0, 0)
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	v := viewOf(3)
	o := &v.Event.Overview
	o.Level, o.Sentence = "trouble", "No server can be used: "+strings.Repeat("requests fail and ", 8)+"so on."
	o.Problems = []admin.Problem{{Level: "trouble", Text: o.Sentence}}
	for i := range 5 {
		o.Problems = append(o.Problems, admin.Problem{Level: "warning", Text: fmt.Sprintf("problem %d", i)})
	}
	text := drawn(v, 80, 24)
	contains(t, strings.ReplaceAll(text, "\n", " "), "Trouble: "+o.Sentence)
	contains(t, text, "Also: problem 0", "Also: problem 2", "And 2 more.")
	if strings.Contains(text, "well") {
		t.Errorf("it is not well:\n%s", text)
	}
}

func TestASilentRouterIsNotWell(t *testing.T) {
	v := viewOf(3)
	v.Now = noon.Add(4 * time.Second)
	contains(t, drawn(v, 80, 24), "up 3 h, silent for 4 s")
	v.Err, v.Now = errors.New("connection refused"), noon.Add(17*time.Second)
	text := drawn(v, 80, 24)
	contains(t, text, "connection refused. Trying again; what follows is 17 s old.", "cache-02")
	if strings.Contains(text, "well") {
		t.Errorf("nobody knows that it is well:\n%s", text)
	}
}

func TestRoutersAgree(t *testing.T) {
	f := func(want string, change func(*admin.Routers)) {
		t.Helper()
		v := viewOf(1)
		change(v.Event.Routers)
		contains(t, drawn(v, 80, 24), want)
	}
	f("2 heard, and they place keys differently", func(r *admin.Routers) { r.PlacementsDiffer = true })
	f("2 heard, and their lists", func(r *admin.Routers) { r.ListsDiffer = true })
	f("too few to change", func(r *admin.Routers) { r.Frozen = true })
	f("does not trust", func(r *admin.Routers) { r.Abstains = true })
	f("1 of 2 heard", func(r *admin.Routers) { r.Present = 1 })
	f("do not agree yet", func(r *admin.Routers) { r.Routers[1].Agrees = false })
	f("silent for 2 min", func(r *admin.Routers) { r.Routers[1].Present, r.Routers[1].Silent = false, 120 })
	f("knows no others", func(r *admin.Routers) { r.Routers = nil })
}

func TestWithoutColourThereIsNone(t *testing.T) {
	v := viewOf(3)
	if text := drawn(v, 80, 24); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	v.Look.Color = true
	contains(t, drawn(v, 80, 24), "\x1b[32mAll is well.\x1b[0m")
}

func TestKeys(t *testing.T) {
	f := func(sent string, want ...key) {
		t.Helper()
		if got := keysIn(sent); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", sent, got, want)
		}
	}
	f("q", quit)
	f("\x03", quit)
	f("\t\x1b[C\x1bOC", next, next, next)
	f("\x1b[Z\x1b[D", before, before)
	f("\x1b[5~x\x1b[6~\x1b", pageUp, pageDown)
	f("\x1b[A\x1bOB", up, down)
	if f := Focus(0); f.step(-1).step(1) != f || f.step(numFocus) != f {
		t.Error("steps do not go round")
	}
}

// A part that has all the room can be scrolled to its last row, and no further.
func TestScrolling(t *testing.T) {
	v := viewOf(50)
	first := func() string { return regexp.MustCompile(`cache-\d+`).FindString(drawn(v, 120, 24)) }
	v.press(next)
	if got := first(); got != "cache-00" {
		t.Fatalf("the first is %s", got)
	}
	room := v.room
	v.press(down)
	v.press(down)
	if got := first(); got != "cache-02" {
		t.Errorf("two further down is %s", got)
	}
	v.press(pageDown)
	if got, want := first(), fmt.Sprintf("cache-%02d", 2+room); got != want {
		t.Errorf("a page of %d further is %s, want %s", room, got, want)
	}
	for range 10 {
		v.press(pageDown)
		first()
	}
	text := drawn(v, 120, 24)
	contains(t, text, "cache-49", fmt.Sprintf("rows %d to 50 of 50", 51-room))
	v.press(up)
	if got, want := first(), fmt.Sprintf("cache-%02d", 50-room-1); got != want {
		t.Errorf("one up from the end is %s, want %s", got, want)
	}
	for range 10 {
		v.press(pageUp)
		first()
	}
	if got := first(); got != "cache-00" {
		t.Errorf("back at the beginning is %s", got)
	}
	v.press(down)
	v.press(next)
	v.press(before)
	if got := first(); got != "cache-00" {
		t.Errorf("another part in between begins at %s", got)
	}
}
