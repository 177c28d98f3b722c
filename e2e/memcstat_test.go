package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// exported are the names that prometheus/memcached_exporter (pkg/exporter/exporter.go) makes metrics of, those that need
// a certain storage left out.
var exported = strings.Fields(`version uptime time get_hits get_misses delete_hits delete_misses incr_hits incr_misses
	decr_hits decr_misses cas_hits cas_misses cas_badval touch_hits touch_misses cmd_flush cmd_set rusage_user rusage_system
	bytes limit_maxbytes curr_items total_items bytes_read bytes_written curr_connections total_connections
	rejected_connections conn_yields listen_disabled_num evictions reclaimed store_too_large store_no_memory
	lru_crawler_starts direct_reclaims crawler_items_checked crawler_reclaimed moves_to_cold moves_to_warm moves_within_lru
	accepting_conns`)

// memcstat runs libmemcached's tool and returns what it shows.
func memcstat(t *testing.T, addr string, args ...string) map[string]string {
	t.Helper()
	out, err := exec.Command(memcachedtest.Need(t, "memcstat"), append(args, "--servers="+addr)...).CombinedOutput()
	if err != nil {
		t.Fatalf("memcstat: %v\n%s", err, out)
	}
	stats := make(map[string]string)
	for line := range bytes.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(string(line)), ": "); ok {
			stats[name] = value
		}
	}
	return stats
}

// memcstat shows of a router what it shows of memcached, under the same names, and what an exporter needs can be read:
// durations as whole seconds and microseconds, all else as numbers.
func TestMemcstat(t *testing.T) {
	var backends []string
	for _, s := range memcachedtest.StartN(t, 2) {
		backends = append(backends, s.Addr())
	}
	r := startRouter(t, backends)
	use(t, r, 30, 10)
	stats, memcached := memcstat(t, r.addr), memcstat(t, backends[0])
	for name := range memcached {
		if _, ok := stats[name]; !ok && name != "libevent" { // which is text
			t.Errorf("memcached tells %s, the router does not", name)
		}
	}
	for _, name := range exported {
		value := stats[name]
		_, err := strconv.ParseFloat(value, 64)
		if strings.HasPrefix(name, "rusage_") {
			seconds, micros, _ := strings.Cut(value, ".")
			_, err = strconv.ParseUint(seconds, 10, 64)
			if _, err2 := strconv.ParseUint(micros, 10, 64); err == nil && len(micros) == 6 {
				err = err2
			} else if err == nil {
				err = fmt.Errorf("%q has not six digits", micros)
			}
		}
		if err != nil && name != "version" {
			t.Errorf("an exporter cannot read %s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"accepting_conns": "1", "router_servers": "2", "router_servers_up": "2", "router_get_hits": "30", "router_get_misses": "10",
		"router_server_errors": "1", "cmd_set": "1", "router_failed": "0", "rejected_connections": "0",
	} {
		if stats[name] != want {
			t.Errorf("%s is %s, want %s", name, stats[name], want)
		}
	}
	if p50, _ := strconv.Atoi(stats["router_latency_p50_us"]); p50 == 0 {
		t.Errorf("the median latency is %q us", stats["router_latency_p50_us"])
	}
	if settings := memcstat(t, r.addr, "--args=settings"); settings["maxconns"] == "" {
		t.Errorf("the settings are %v", settings)
	}
}
