//go:build linux

package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
	"cacherouter/loadtest/load"
	"cacherouter/loadtest/workload"
)

// ran runs "run" against a new server and returns what it printed.
func ran(t *testing.T, args ...string) string {
	t.Helper()
	server := memcachedtest.Start(t)
	text, err := command(t, append([]string{"run", "--target", server.Addr(), "--servers", server.Addr()}, args...)...).CombinedOutput()
	if err != nil && !strings.Contains(string(text), "the rate was not kept") {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}

func says(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("output does not say %q:\n%s", want, text)
		}
	}
}

func TestAnOpenLoopSaysHowTheRateWasKept(t *testing.T) {
	says(t, ran(t, "-r", "1000", "-n", "500", "--ratio", "1:3:1", "--multi", "4"),
		"pipeline 16", "1000 requests/s asked for", "own delay", "0 stale", "of 4 keys", "items; 1.00 of the mean", "generator")
}

func TestPublishedMixesAreRunAndMayBeChanged(t *testing.T) {
	says(t, ran(t, "--mix", "etc", "-n", "1000", "--keys", "500"), "etc: 500 keys, zipf:0.99, values of etc bytes, sets:gets 1:30, keys of gev:")
	says(t, ran(t, "--mix", "twitter4", "-n", "1000", "--keys", "500", "--size", "10", "--choose", "uniform"),
		"twitter4: 500 keys, uniform, values of 10 bytes, sets:gets 7:93", "living 60s:0.39")
}

func TestHelpNamesAllMixes(t *testing.T) {
	text, err := command(t, "run", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range workload.Mixes() {
		says(t, string(text), m.Name)
	}
}

func TestTheOriginsLoadIsAResult(t *testing.T) {
	says(t, ran(t, "--no-fill", "--origin", "1ms:10", "-r", "500", "-n", "300", "--ratio", "0:1", "--keys", "50"), "origin", "asked ", "values set")
	says(t, ran(t, "--client", "gomemcache", "-c", "4", "--churn", "10", "-n", "300"), "by gomemcache", "made anew after 10 requests", "connections made")
}

func TestThePageIsWholeAndNeedsNothingElse(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	ran(t, "-r", "1000", "-d", "2s", "--html", page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(text), "Latency by percentile", "Rate over time", "Load of the servers, by their own counters", "<polyline", "own delay")
	for _, foreign := range []string{"<script", "<link", "src=", "href=", "url("} {
		if strings.Contains(string(text), foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
	begin, end := strings.Index(string(text), "<svg"), strings.LastIndex(string(text), "</svg>")
	for d := xml.NewDecoder(strings.NewReader(string(text)[begin : end+len("</svg>")])); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestALineOfProgress(t *testing.T) {
	w := load.Window{Counts: load.Counts{Gets: 900, Sets: 100, Misses: 7}, P50: 120, P99: 950}
	const want = "[############............]  50 %  1000/s  p50 120 us  p99 950 us  misses 7"
	if got := line(w, 0.5); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p := &progress{windows: make(chan load.Window, 2), ended: make(chan struct{})}
	p.tell(w)
	p.tell(w)
	p.tell(w) // nobody looks: it does not wait
	close(p.windows)
	var out strings.Builder
	p.show(&out, 0, 4000)
	const clear = "\r\x1b[K"
	want2 := clear + line(w, 0.25) + clear + line(w, 0.5) + clear
	if out.String() != want2 {
		t.Errorf("%q, want %q", out.String(), want2)
	}
}
