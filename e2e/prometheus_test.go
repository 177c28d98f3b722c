package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// prom is a Prometheus that scrapes once a second, and evaluates the alerts that we ship.
type prom struct {
	addr string
}

// startPrometheus starts Debian's Prometheus with scrapes of the targets.
func startPrometheus(t *testing.T, targets []string, flags ...string) *prom {
	t.Helper()
	path := memcachedtest.Need(t, "prometheus")
	alerts, err := filepath.Abs("../docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs:\n- job_name: cacherouter\n  static_configs: [{targets: [%s]}]\n", alerts, strings.Join(targets, ", "))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"}, flags...)
	cmd := exec.Command(path, args...)
	var log memcachedtest.Output
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("prometheus ended with %v", err)
		}
		if t.Failed() {
			t.Logf("prometheus said:\n%s", log.String())
		}
	})
	p := new(prom)
	waitFor(t, "prometheus to listen", func() error {
		found := regexp.MustCompile(`msg="Listening on" address=(\S+)`).FindStringSubmatch(log.String())
		if found == nil {
			return errors.New("it does not yet")
		}
		p.addr = found[1]
		return nil
	})
	return p
}

// get asks the API of Prometheus and decodes what it answers.
func (p *prom) get(path string, data any) error {
	resp, err := http.Get("http://" + p.addr + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("%w: %.200s", err, b)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// query returns the one figure that an expression has now.
func (p *prom) query(expr string) (float64, error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get("/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		return 0, err
	}
	if len(data.Result) != 1 {
		return 0, fmt.Errorf("%s has %d figures", expr, len(data.Result))
	}
	return strconv.ParseFloat(fmt.Sprint(data.Result[0].Value[1]), 64)
}

// becomes waits until an expression has a figure between two bounds.
func (p *prom) becomes(t *testing.T, expr string, low, high float64) {
	t.Helper()
	waitFor(t, expr, func() error {
		got, err := p.query(expr)
		if err == nil && !(got >= low && got <= high) {
			err = fmt.Errorf("%s is %v, want %v to %v", expr, got, low, high)
		}
		return err
	})
}

// use asks a router for what is there, for what is not, and for what cannot be done.
func use(t *testing.T, r *router, hits, misses int) {
	t.Helper()
	c := connect(t, r.addr)
	var requests strings.Builder
	requests.WriteString("set there 0 0 1\r\nx\r\n")
	for range hits {
		requests.WriteString("get there\r\n")
	}
	for range misses {
		requests.WriteString("get gone\r\n")
	}
	requests.WriteString("incr there 1\r\nversion\r\n")
	if err := c.send(requests.String()); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := c.line()
		if err != nil && !failed(err) && !strings.HasPrefix(line, "CLIENT_ERROR") {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "VERSION") {
			return
		}
	}
}

// Prometheus scrapes a router in front of real servers, in either of the formats that it speaks, answers what was
// counted, evaluates every alert that we ship, and has one pending when the router is gone.
func TestPrometheus(t *testing.T) {
	for name, flags := range map[string][]string{"text": nil, "native histograms": {"--enable-feature=native-histograms"}} {
		t.Run(name, func(t *testing.T) {
			var backends []string
			for _, s := range memcachedtest.StartN(t, 3, memcachedtest.Steady...) {
				backends = append(backends, s.Addr())
			}
			r := startRouter(t, backends)
			p := startPrometheus(t, []string{r.admin}, flags...)
			p.becomes(t, "cacherouter_scrape_success", 1, 1)
			use(t, r, 30, 10)
			p.becomes(t, `sum(cacherouter_replies_total{verb="get",outcome="hit"})`, 30, 30)
			p.becomes(t, `sum(cacherouter_server_replies_total{outcome="miss"})`, 1, 10) // those that share are one
			p.becomes(t, `cacherouter_hits_total / (cacherouter_hits_total + cacherouter_misses_total)`, 0.75, 0.75)
			p.becomes(t, `cacherouter_errors_total{kind="server"}`, 1, 1)
			p.becomes(t, `sum(cacherouter_server_key_ratio)`, 0.999, 1.001)
			p.becomes(t, `sum(cacherouter_server_effective_weight)`, 3, 3)
			count, quantile := `cacherouter_request_duration_seconds_count`, `histogram_quantile(0.5, cacherouter_request_duration_seconds_bucket)`
			if flags != nil {
				count, quantile = `histogram_count(cacherouter_request_duration_seconds)`, `histogram_quantile(0.5, cacherouter_request_duration_seconds)`
			}
			p.becomes(t, count, 42, 42)
			p.becomes(t, quantile, 1e-6, 10)
			var rules struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
			waitFor(t, "all rules to be evaluated", func() error {
				if err := p.get("/api/v1/rules", &rules); err != nil {
					return err
				}
				for _, rule := range rules.Groups[0].Rules {
					if rule.Health != "ok" {
						return fmt.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
					}
				}
				return nil
			})
			r.stop()
			p.becomes(t, `count(ALERTS{alertname="CacherouterDown"})`, 1, 1)
		})
	}
}
