package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"

	"github.com/chromedp/chromedp"
)

// TestDashboardNumbers holds the page to how soon the first figure is drawn, and to what it costs the router that five browsers look.
// Times are the best of several, as the machine does other things, too.
func TestDashboardNumbers(t *testing.T) {
	r := startPlain(t, memcachedtest.Addrs(memcachedtest.StartN(t, 3)))
	b := openTab(t)
	b.window(1440, 900, "light")
	var first []float64
	for len(first) < 20 && (len(first) < 3 || slices.Min(first) > 300) {
		b.do(chromedp.Navigate("http://" + r.admin + "/"))
		b.is(`performance.getEntriesByName('first-figure').length`)
		first = append(first, value[float64](b, `performance.getEntriesByName('first-figure')[0].startTime`))
	}
	b.do(chromedp.Navigate("about:blank"))
	b.quiet("")
	if best := slices.Min(first); best > 300 {
		t.Errorf("the first figure is drawn after %.0f ms at best", best)
	}
	var cost []float64
	for range 3 {
		alone := r.cpu(2 * time.Second)
		leave := follow(t, r, 5)
		watched := r.cpu(2 * time.Second)
		leave()
		cost = append(cost, 100*(watched-alone))
	}
	if best := slices.Min(cost); best > 1 {
		t.Errorf("five browsers cost %.2f %% of a core at best", best)
	}
	t.Logf("first figure after %.0f ms; five browsers cost %.2f %% of a core", first, cost)
}

// follow listens to the router's events n times over.
func follow(t *testing.T, r *router, n int) (leave func()) {
	t.Helper()
	var bodies []io.Closer
	for range n {
		resp, err := http.Get("http://" + r.admin + "/api/v1/events")
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		bodies = append(bodies, resp.Body)
		go io.Copy(io.Discard, resp.Body) // ends with the body
	}
	return func() {
		for _, b := range bodies {
			b.Close()
		}
	}
}

// cpu returns how many processors the router has kept busy for some time.
func (r *router) cpu(d time.Duration) float64 {
	r.tb.Helper()
	before, began := r.ran(), time.Now()
	select {
	case <-r.done:
		r.tb.Fatal("the router has ended")
	case <-time.After(d):
	}
	return (r.ran() - before).Seconds() / time.Since(began).Seconds()
}

// ran returns how long the router's threads have run, in nanoseconds where ps would tell hundredths of a second.
func (r *router) ran() (sum time.Duration) {
	r.tb.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", r.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		memcachedtest.Missing(r.tb, "the kernel does not tell how long threads have run")
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		word, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			r.tb.Fatalf("%s has %q", file, text)
		}
		sum += time.Duration(n)
	}
	return sum
}
