package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The faults that may happen to a world. Times are shorter or longer than requests may take; a server that is gone is
// away for long enough that its keys are moved, if that is what the routers do, and one that is off the list has its
// keys handed over to the others and back.
const (
	serverKilled  = "server killed and restarted"
	serverPaused  = "server stopped for less than the timeout"
	serverStopped = "server stopped for longer than the timeout"
	serverGone    = "server stopped until it is given up"
	serverReset   = "connections to a server reset"
	linkReset     = "connections of a router to a server reset"
	linkPaused    = "router cut off from a server for less than the timeout"
	linkCut       = "router cut off from a server for longer than the timeout"
	routerKilled  = "router killed and restarted"
	routerPaused  = "router stopped for less than the timeout"
	routerStopped = "router stopped until the others give it up"
	routerCut     = "router cut off from the others"
	serverMoved   = "server taken off the list and put back"
	poolRenewed   = "pool begun anew by a reload"
	serverAway    = "server killed until its keys have failed over, and restarted"
	splitGrows    = "router killed and restarted with a split that has grown"
)

// unsettling are the faults after which cas tokens of before are not used: they would be asked of another process, or of
// another home that may have got the same value with another token.
var unsettling = []string{serverKilled, serverGone, serverMoved, serverAway, splitGrows}

// mishap has one fault happen, somewhere and for a random time, and end.
func (w *world) mishap(fault string) {
	w.tb.Helper()
	n, m := w.rng.IntN(len(w.servers)), w.rng.IntN(len(w.routers))
	server, link, d := w.servers[n], w.links[m][n], w.duration(fault)
	if slices.Contains(unsettling, fault) {
		w.cohort.unsettle()
		defer w.cohort.settled()
		w.rests() // so that requests are on their way again
	}
	began := w.cohort.rec.Now()
	switch fault {
	case serverKilled:
		server.Stop()
		w.lasts(d)
		server.Restart()
		w.count(n)
	case serverPaused, serverStopped, serverGone:
		server.Pause()
		w.lasts(d)
		server.Resume()
	case serverReset:
		for _, links := range w.links {
			links[n].reset()
		}
	case linkReset:
		link.reset()
	case linkPaused, linkCut:
		link.hole()
		w.lasts(d)
		link.heal()
	case routerKilled:
		w.retire(m)
		w.startRouter(m)
	case routerPaused, routerStopped:
		w.routers[m].signal(syscall.SIGSTOP)
		w.lasts(d)
		w.routers[m].signal(syscall.SIGCONT)
	case routerCut:
		w.cutOff(m)
	case serverMoved:
		w.move(n, d)
	case poolRenewed:
		w.renewed++
		w.reload()
	case serverAway:
		w.failOver()
	case splitGrows:
		w.grow(m)
	}
	w.happened(fault, fmt.Sprintf("server %d, router %d", n, m), began)
}

// duration returns for how long a fault is to last.
func (w *world) duration(fault string) time.Duration {
	short := time.Duration(10+w.rng.IntN(100)) * time.Millisecond
	switch fault {
	case serverStopped, linkCut:
		return 8*short + impatience
	case serverGone, routerStopped:
		return 30*short + 6*time.Second
	case serverMoved:
		return 30 * short
	}
	return short
}

// move takes a server off the list of all routers for a while.
func (w *world) move(n int, d time.Duration) {
	w.tb.Helper()
	for _, w.unlist = range []int{n, -1} {
		w.reload()
		w.lasts(d)
	}
}

// reload has all routers take over their configurations.
func (w *world) reload() {
	w.tb.Helper()
	before := make([]int, len(w.routers))
	for i, r := range w.routers {
		w.configure(i)
		before[i] = r.reloads()
		r.signal(syscall.SIGHUP)
	}
	for i, r := range w.routers {
		waitFor(w.tb, "the routers to take over their configurations", func() error {
			if got := r.reloads(); got == before[i] {
				return fmt.Errorf("%d reloads so far", got)
			}
			return nil
		})
	}
}

// failOver kills the home of a key, and restarts it when other servers have taken writes in its place.
func (w *world) failOver() {
	w.tb.Helper()
	key := w.cohort.callers[0].cells[0].key
	home := w.where([]string{key})[key]
	n, err := strconv.Atoi(strings.TrimPrefix(home, "server"))
	if err != nil {
		w.tb.Fatalf("%s lives on %q", key, home)
	}
	before := w.counted()[failedOver]
	w.servers[n].Stop()
	for deadline := time.Now().Add(ripe); w.counted()[failedOver] < before+atWork && w.lasts(20*time.Millisecond); { // between two looks
		if time.Now().After(deadline) {
			w.tb.Errorf("no writes have failed over for %v", ripe)
			break
		}
	}
	w.servers[n].Restart()
	w.count(n)
}

// grow restarts a router whose split is to send more keys over, until all have gone.
func (w *world) grow(n int) {
	w.tb.Helper()
	w.grown = min(100, w.grown+1+w.rng.IntN(50))
	w.whole(n)
	w.retire(n)
	w.configure(n)
	w.startRouter(n)
}

// whole waits until a router knows of no server that is out or has missed a write: killed, it would forget that, which
// docs/consistency.md says of one that is alone.
func (w *world) whole(n int) {
	w.tb.Helper()
	waitFor(w.tb, "all servers to be in and clean", func() error {
		_, text, err := w.routers[n].http("/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			out := strings.HasPrefix(line, "cacherouter_server_status{") && !strings.Contains(line, `status="in"`)
			missed := strings.HasPrefix(line, "cacherouter_server_missed_keys{")
			if (out || missed) && !strings.HasSuffix(line, " 0\n") {
				return errors.New(strings.TrimSpace(line))
			}
		}
		return nil
	})
}

// reloads counts the times that the router has said that it reloaded.
func (r *router) reloads() int { return strings.Count(r.log.String(), "msg=reloaded") }

// happened notes a fault that is over.
func (w *world) happened(fault, where string, began time.Duration) {
	event := fmt.Sprintf("[%d, %d] %s: %s", began.Microseconds(), w.cohort.rec.Now().Microseconds(), fault, where)
	w.events = append(w.events, event)
}

// mishaps counts the faults that happened.
func (w *world) mishaps() string {
	count := make(map[string]int)
	for _, event := range w.events {
		_, fault, _ := strings.Cut(event, "] ")
		fault, _, _ = strings.Cut(fault, ":")
		count[fault]++
	}
	var b strings.Builder
	for _, fault := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "%6d x %s\n", count[fault], fault)
	}
	return b.String()
}
