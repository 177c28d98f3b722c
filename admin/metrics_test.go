package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cacherouter/backend"
	"cacherouter/bounded"
	"cacherouter/hotkey"
	"cacherouter/internal/memcachedtest"
	"cacherouter/latency"
	"cacherouter/membership"
	"cacherouter/membership/discover"
	"cacherouter/membership/gossip"
	"cacherouter/membership/view"
	"cacherouter/memproto"
	"cacherouter/reload"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/testing/protocmp"
)

// fleet is a router, and its membership, of many servers that all have had all that there is
// to count.
type fleet struct {
	table  *router.Table
	snaps  []router.Snapshot
	state  *membership.State
	hidden bool // loops do not answer
}

func newFleet(n, loops int) *fleet {
	f := &fleet{table: &router.Table{Picker: homeIsFirst{}}, state: &membership.State{Since: time.Now()}}
	var h latency.Histogram
	for d := time.Microsecond; d < 2*latency.Most; d = d * 5 / 4 {
		h.Observe(d)
	}
	st := backend.Stats{Calls: 1 << 40, BytesIn: 1 << 50, BytesOut: 1 << 45, Up: 1, Latency: h}
	for i := range st.Outcomes {
		st.Outcomes[i] = 1 << 30
	}
	shares := make([]float64, n)
	for i := range n {
		name, addr := fmt.Sprintf("cache-%04d", i), fmt.Sprintf("10.0.%d.%d:11211", i/256, i%256)
		f.table.Servers = append(f.table.Servers, router.Server{Name: name, Address: addr})
		f.state.Servers = append(f.state.Servers, membership.Server{Name: name, Address: addr, Weight: 1, Reads: true, Share: 1000})
		shares[i] = 1 / float64(n)
	}
	var err error
	if f.table.Bound, err = bounded.New(bounded.Default(slices.Repeat([]int{1}, n))); err != nil {
		panic(err)
	}
	f.table.Shares = func() []float64 { return shares }
	for range loops {
		s := router.Snapshot{PoolSnapshot: router.PoolSnapshot{Stats: router.Stats{Requests: make([]uint64, memproto.NumVerbs)}, Servers: make(map[string]backend.Stats), Latency: h}}
		for _, server := range f.table.Servers {
			s.Servers[server.Address] = st
		}
		f.snaps = append(f.snaps, s)
	}
	return f
}

func (f *fleet) Snapshots(ctx context.Context) ([]router.Snapshot, error) {
	if f.hidden {
		return nil, context.DeadlineExceeded
	}
	return f.snaps, nil
}
func (f *fleet) Table() *router.Table    { return f.table }
func (f *fleet) View() *membership.State { return f.state }
func (f *fleet) Stats() membership.Stats {
	return membership.Stats{Sources: map[string]discover.WatcherStats{"list": {}}}
}
func (f *fleet) Explain(string) (view.Explanation, bool) {
	return view.Explanation{}, true
}
func (f *fleet) Routers() []gossip.Member     { return nil }
func (f *fleet) Drain(string) bool            { return false }
func (f *fleet) Undrain(string) bool          { return false }
func (f *fleet) Neighbours() []view.Neighbour { return nil }

func (f *fleet) server() *Server {
	return New(Config{
		Router: f, Engine: "epoll", Membership: f, HotKeys: func(int) *hotkey.Report { return new(hotkey.Report) },
		Records: func() RecordCounts { return RecordCounts{} },
		Reloads: reload.NewJournal(time.Now()).State,
		Quotas:  func() []router.QuotaUse { return []router.QuotaUse{{Route: "a:", TooFast: 3, TooMany: 4, UnderWay: 5}} },
	})
}

// scrape returns what a scraper gets that does not speak protocol buffers.
func scrape(t testing.TB, s *Server) string {
	t.Helper()
	rec := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %.2000s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// namesIn returns the names of our families in a scrape.
func namesIn(scrape string) (names []string) {
	for line := range strings.Lines(scrape) {
		if name, ok := strings.CutPrefix(line, "# TYPE cacherouter_"); ok {
			names = append(names, "cacherouter_"+strings.Fields(name)[0])
		}
	}
	return names
}

func allFamilies() []*family {
	all := append(routerFamilies(), membershipFamilies()...)
	all = append(all, hotKeyMetrics.families()...)
	all = append(all, recordMetrics.families()...)
	all = append(all, reloadsFamilies...)
	slices.SortFunc(all, func(a, b *family) int { return strings.Compare(a.name, b.name) })
	return all
}

// What is scraped is what is documented, none missing and none more.
func TestScrapeHasAllFamilies(t *testing.T) {
	var want []string
	for _, f := range allFamilies() {
		want = append(want, f.name)
	}
	if diff := cmp.Diff(want, namesIn(scrape(t, newFleet(3, 2).server()))); diff != "" {
		t.Errorf("families (-documented +scraped):\n%s", diff)
	}
}

// The text is what the metrics library would write.
func TestTextIsThatOfTheLibrary(t *testing.T) {
	f := newFleet(3, 2)
	f.table.Servers[1].Name = "a\"b\\c\nd\xff"
	figures := f.server().figures()
	var want strings.Builder
	for _, m := range figures.messages() {
		if _, err := expfmt.MetricFamilyToText(&want, m); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(text string) map[string]*dto.MetricFamily {
		t.Helper()
		p := expfmt.NewTextParser(model.UTF8Validation)
		m, err := p.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	got := string(figures.appendText(nil))
	if diff := cmp.Diff(parse(want.String()), parse(got), protocmp.Transform()); diff != "" {
		t.Errorf("(-library +ours):\n%s", diff)
	}
}

// A scraper gets protocol buffers if it prefers them, and else text.
func TestScrapersGetWhatTheyAskFor(t *testing.T) {
	s := newFleet(3, 2).server()
	f := func(accept, want string) {
		t.Helper()
		req := httptest.NewRequest("GET", "/metrics", nil)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		rec := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(rec, req)
		if got := rec.Header().Get("Content-Type"); rec.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("who accepts %q gets %d %q, want %q", accept, rec.Code, got, want)
		}
	}
	f("", "text/plain")
	f("*/*", "text/plain")
	f("text/html,application/xhtml+xml,*/*;q=0.8", "text/plain")
	// Prometheus without native histograms, and with them.
	f("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain")
	f("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "application/vnd.google.protobuf")
}

// What quotas refuse is told by reason, and among the errors.
func TestScrapeOfQuotas(t *testing.T) {
	f := newFleet(3, 2)
	f.snaps[0].Shed[router.Low], f.snaps[0].OverQuota = 2, 7
	got := scrape(t, f.server())
	for _, want := range []string{
		`cacherouter_quota_refused_total{listener="",network="",reason="rate",route="a:"} 3`,
		`cacherouter_quota_refused_total{listener="",network="",reason="concurrent",route="a:"} 4`,
		`cacherouter_quota_requests_in_flight{listener="",network="",route="a:"} 5`,
		`cacherouter_errors_total{kind="quota"} 7`, `cacherouter_errors_total{kind="shed"} 2`, `cacherouter_shed_total{priority="low"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}

// While loops do not answer a scrape says so, and has the rest.
func TestScrapeOfStuckLoops(t *testing.T) {
	f := newFleet(3, 2)
	f.hidden = true
	got := scrape(t, f.server())
	for _, want := range []string{"cacherouter_scrape_success 0\n", "cacherouter_view_version 0\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %.300s", want, got)
		}
	}
}

// While tables change, the snapshots may be of other servers than the table: what is known of
// both is told.
func TestScrapeWhileTheTableChanges(t *testing.T) {
	f := newFleet(3, 1)
	delete(f.snaps[0].Servers, f.table.Servers[1].Address)
	got := scrape(t, f.server())
	if strings.Contains(got, `cacherouter_server_calls_total{addr="10.0.0.1:11211"`) || !strings.Contains(got, `cacherouter_server_calls_total{addr="10.0.0.2:11211"`) {
		t.Errorf("the servers are not those that are known:\n%s", got)
	}
}

// A histogram is the same in both of its forms, and the one that was observed.
func TestTiming(t *testing.T) {
	var h latency.Histogram
	durations := []time.Duration{0, 20 * time.Microsecond, time.Millisecond, time.Millisecond, 1100 * time.Microsecond, time.Second, time.Hour}
	for _, d := range durations {
		h.Observe(d)
	}
	got := timing(&h, quadrupling).message()
	if got.GetSampleCount() != 7 || got.GetSampleSum() != h.Sum().Seconds() || got.GetZeroCount() != 1 {
		t.Errorf("the histogram is %v", got)
	}
	for _, b := range got.Bucket {
		want := uint64(0)
		for _, d := range durations {
			if d.Seconds() <= b.GetUpperBound() {
				want++
			}
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("%d are up to %v s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
		}
	}
	// Bounds of native buckets are powers of 2^(1/4).
	native := make(map[int]int64)
	at, n := 0, int64(0)
	deltas := got.PositiveDelta
	for _, s := range got.PositiveSpan {
		at += int(s.GetOffset())
		for range s.GetLength() {
			n += deltas[0]
			native[at] += n
			deltas, at = deltas[1:], at+1
		}
	}
	want := map[int]int64{-62: 1, -39: 3, 0: 1, 25: 1}
	if diff := cmp.Diff(want, native); diff != "" {
		t.Errorf("native buckets (-want +got):\n%s", diff)
	}
}

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, in string, args ...string) {
	t.Helper()
	c := exec.Command(memcachedtest.Need(t, "promtool"), args...)
	c.Stdin = strings.NewReader(in)
	if out, err := c.CombinedOutput(); err != nil || in != "" && len(out) > 0 {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestNamesForPromtool(t *testing.T) {
	promtool(t, scrape(t, newFleet(3, 2).server()), "check", "metrics")
}

// scrapers are the ways to ask, as Prometheus asks without and with native histograms.
var scrapers = map[string]string{
	"text":  "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	"proto": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.5",
}

func (s *Server) scrapeAs(accept string) int {
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip")
	w := &sink{header: http.Header{}}
	s.http.Handler.ServeHTTP(w, req)
	return w.n
}

// sink is a client that is as fast as can be.
type sink struct {
	header http.Header
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }
