package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What routers count of the work of their features.
const (
	shared   = "flights_joined_total"
	spilled  = "spilled_total"
	copied   = "copied_total"
	spreads  = "copies_spread_total"
	cleaned  = "cleaned_total"
	nearHits = "near_hits_total"
	parked   = "gets_parked_total"
	pulled   = "pulled_total"
	joined   = "large_values_joined_total"

	failedOver = "failed_over_total"

	overQuota = "quota_refused_total"
	shed      = "shed_total"
	unretried = "retries_refused_total"
)

// atWork is how often a feature must have had work to do for it to be in use. From a server that was late no copies are
// read for a while, so after a fault this is waited for as long as recovered, and at first, when a busy machine may make
// servers late over and over, as long as ripe.
const (
	atWork    = 5
	recovered = 15 * time.Second
	ripe      = 2 * time.Minute
)

// features are all that is counted of the plan.
func (w *world) features() []string { return slices.Concat(w.plan.uses, w.plan.makes) }

// counts returns what a router has counted.
func (w *world) counts(r *router) map[string]float64 {
	w.tb.Helper()
	_, text, err := r.http("/metrics")
	if err != nil {
		w.tb.Fatalf("cannot ask a router what it has counted: %v", err)
	}
	counts := make(map[string]float64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64) // or a comment
		name, _, _ = strings.Cut(name, "{")   // of all pools
		counts[strings.TrimPrefix(name, "cacherouter_")] += n
	}
	return counts
}

// retire kills a router and keeps what it has counted.
func (w *world) retire(n int) {
	w.tb.Helper()
	counts := w.counts(w.routers[n])
	for _, name := range w.features() {
		w.past[name] += counts[name]
	}
	w.routers[n].kill()
}

// counted returns what all routers have counted in all their lives.
func (w *world) counted() map[string]float64 {
	w.tb.Helper()
	all := make(map[string]float64)
	for _, r := range w.routers {
		counts := w.counts(r)
		for _, name := range w.features() {
			all[name] += counts[name]
		}
	}
	for name, n := range w.past {
		all[name] += n
	}
	return all
}

// uses tells what the features of the plan have had to do.
func (w *world) uses() string {
	w.tb.Helper()
	var b strings.Builder
	counted := w.counted()
	for _, name := range w.features() {
		fmt.Fprintf(&b, "%10.0f %s\n", counted[name], name)
	}
	return b.String()
}

// begins waits until all features of the plan are in use, and tells whether the cohort is still there.
func (w *world) begins() bool {
	w.tb.Helper()
	lazy := w.working(ripe)
	if lazy != "" && w.lasts(0) {
		w.tb.Errorf("a feature has too little to do for %v: %s", ripe, lazy)
	}
	return w.lasts(0)
}

// working waits until each feature of the plan has had more work to do, the cohort is no longer there, or the time is
// over, and tells which one had too little.
func (w *world) working(limit time.Duration) (lazy string) {
	w.tb.Helper()
	before := w.counted()
	for deadline := time.Now().Add(limit); ; {
		lazy = ""
		counted := w.counted()
		for _, name := range w.plan.uses {
			if n := counted[name]; n < before[name]+atWork {
				lazy = fmt.Sprintf("%s has come from %v to %v", name, before[name], n)
			}
		}
		if lazy == "" || time.Now().After(deadline) || !w.lasts(50*time.Millisecond) { // between two looks, not in place of one
			return lazy
		}
	}
}

// ripen waits until copies are read at the router that was started last, and so at all. It reads none before those have
// expired that it may have made in a former life. Keys that no history has are asked for meanwhile, several at a time.
func (w *world) ripen() {
	w.tb.Helper()
	last := len(w.routers) - 1
	c := connect(w.tb, w.addrs[last])
	var touches, gets string
	for i := range 40 {
		key := fmt.Sprintf("ripe%d", i)
		c.mustSet(w.tb, key, key)
		touches += "touch " + key + " 0\r\n"
		gets += "get " + key + "\r\n"
	}
	for deadline := time.Now().Add(ripe); w.counts(w.routers[last])[copied] == 0; {
		if time.Now().After(deadline) {
			w.tb.Fatalf("no copy is read for %v", ripe)
		}
		w.pipeline(c, touches) // and no copy has it
		w.pipeline(c, gets)
	}
}

// pipeline sends requests for what is there and waits for the replies.
func (w *world) pipeline(c *client, requests string) {
	w.tb.Helper()
	if err := c.send(requests); err != nil {
		w.tb.Fatal(err)
	}
	for request := range strings.Lines(requests) {
		var err error
		if strings.HasPrefix(request, "get ") {
			_, err = c.values()
		} else {
			_, err = c.line()
		}
		if err != nil && !failed(err) {
			w.tb.Fatal(err)
		}
	}
}
