package admin

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cacherouter/latency"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// metricsDoc returns docs/metrics.md, made from the families.
func metricsDoc() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" +
		"<!-- Made from the code: go test ./admin -run MetricsDoc -update -->\n\n" +
		"`GET /metrics` on the admin port answers in the formats of Prometheus. [alerts.yml](alerts.yml) has alerts with what to do about them, [grafana.json](grafana.json) a dashboard.\n\n" +
		"```yaml\nscrape_configs:\n  - job_name: cacherouter # the alerts and the dashboard go by this name\n    static_configs:\n      - targets: [router-1:11312, router-2:11312]\n```\n\n" +
		"A figure is read off the event loops when it is asked for, between two of their turns. Each router tells what it sees itself, so figures of servers are to be added up, or compared, over the routers. " +
		"A counter begins at 0 when the router starts, and that of a server also when it comes back to the list. Where a router has several pools, what is about one has the label `pool` besides, and sums are what they are for one: about clients, event loops and gossip it is not.\n\n" +
		"**Latencies** are measured with the clock of the event loops, which is read once a turn: that costs nothing, and each may be off by the length of a turn, which `cacherouter_loop_turn_duration_seconds` tells; " +
		fmt.Sprintf("what is at most %v counts as nothing. ", latency.Least) +
		"A Prometheus that runs with `--enable-feature=native-histograms` gets them as native histograms with four buckets to a doubling, so that quantiles are off by a tenth at most: `histogram_quantile(0.99, sum(rate(cacherouter_request_duration_seconds[5m])))`. " +
		"Any other gets buckets that double, and at servers quadruple, from 2^-16 s, which is 15 µs, to 8 s and 4 s: `histogram_quantile(0.99, sum by (le) (rate(cacherouter_request_duration_seconds_bucket[5m])))`.\n\n" +
		"**Cost.** A router of a thousand servers tells up to 53,000 figures: 5 MB of text, 260 kB packed. Scrapes take turns, and none makes a loop wait for it.\n\n" +
		"Those of the process come from Prometheus' Go library: `go_…` (memory, garbage collection, goroutines), `process_…` (processor, memory, descriptors) and `go_build_info`.\n")
	for _, s := range []struct {
		title    string
		families []*family
	}{
		{"The router and its clients", routerFamilies()},
		{"Membership", membershipFamilies()},
		{"Hot keys", hotKeyMetrics.families()},
		{"Records of single requests", recordMetrics.families()},
		{"The configuration", reloadsFamilies},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n", s.title)
		for _, f := range s.families {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, strings.Join(f.labels, ", "), f.help)
		}
	}
	b.WriteString("\n## The stats command\n\n" +
		"`stats` in the memcached protocol tells the same in memcached's names, so that `memcstat` and exporters for memcached show a router like a server: what is the router's own, such as `uptime`, `curr_connections`, `rejected_connections`, `auth_errors`, `max_connections` and `rusage_user`, is told for the router; " +
		"everything else, such as `get_hits`, `curr_items` and `evictions`, is added up over the servers. Names that begin with `router_` are what memcached has not: requests, hits and misses as clients saw them, failures, latencies in microseconds since the start, and what coalescing, leases, the near cache and spilling did.\n")
	return b.String()
}

func TestMetricsDoc(t *testing.T) {
	const file = "../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(metricsDoc()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metricsDoc(), string(got)); diff != "" {
		t.Errorf("docs/metrics.md is out of date, run with -update (-want +got):\n%s", diff)
	}
}

// Each family says what it is, in a sentence.
func TestHelpTexts(t *testing.T) {
	for _, f := range allFamilies() {
		if len(f.help) < 10 || !strings.HasSuffix(f.help, ".") {
			t.Errorf("%s says %q", f.name, f.help)
		}
	}
}

var (
	metricName = regexp.MustCompile(`\bcacherouter_[a-z0-9_]+`)
	summing    = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
)

// known returns the names under which the figures can be asked for.
func known() map[string]bool {
	names := make(map[string]bool)
	for _, f := range allFamilies() {
		names[f.name] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[f.name+suffix] = f.kind == observes
		}
	}
	return names
}

// The alerts and the dashboard ask for metrics that there are.
func TestShippedFilesNameKnownMetrics(t *testing.T) {
	names := known()
	for _, file := range []string{"alerts.yml", "grafana.json"} {
		b, err := os.ReadFile(filepath.Join("../docs", file))
		if err != nil {
			t.Fatal(err)
		}
		all := metricName.FindAllString(string(b), -1)
		for _, name := range all {
			if !names[name] {
				t.Errorf("docs/%s asks for %s, which there is not", file, name)
			}
		}
		if len(all) < 20 {
			t.Errorf("docs/%s asks for %d metrics only", file, len(all))
		}
	}
}

func TestAlertsForPromtool(t *testing.T) {
	promtool(t, "", "check", "rules", "../docs/alerts.yml")
}

// expressions returns what a dashboard asks, wherever it stands.
func expressions(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			all = append(all, expressions(x)...)
		}
	case map[string]any:
		for key, x := range v {
			if s, ok := x.(string); ok && key == "expr" {
				all = append(all, s)
			}
			all = append(all, expressions(x)...)
		}
	}
	return all
}

// The dashboard is JSON, each of its panels says what it shows, and what it asks is PromQL,
// by labels that there are.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard map[string]any
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	labels := []string{"instance", "le", "job"}
	for _, f := range allFamilies() {
		labels = append(labels, f.labels...)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$server", ".*")
	asked := expressions(dashboard)
	for i, expr := range asked {
		fmt.Fprintf(&rules, "  - {record: \"panel:%d\", expr: %q}\n", i, fill.Replace(expr))
		for _, by := range summing.FindAllStringSubmatch(expr, -1) {
			for _, label := range strings.Split(by[1], ", ") {
				if !slices.Contains(labels, label) {
					t.Errorf("%s sums by %s, which no metric has", expr, label)
				}
			}
		}
	}
	if len(asked) < 20 {
		t.Errorf("the dashboard asks only %d things", len(asked))
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}
