//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"cacherouter/loadtest/load"

	"golang.org/x/sys/unix"
)

// progress shows on a terminal how far a load is and how it goes, in a line that is written over each second.
// The zero value shows nothing.
type progress struct {
	windows chan load.Window // nil means that nobody looks
	ended   chan struct{}
}

// progress begins to show it if the standard error is a terminal.
func (c *runCommand) progress() *progress {
	if c.Quiet || !isTerminal(os.Stderr) {
		return &progress{}
	}
	p := &progress{windows: make(chan load.Window, 16), ended: make(chan struct{})}
	go p.show(os.Stderr, c.Duration, c.Requests)
	return p
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// tell is for a load's Watch. It never waits: a terminal that is too slow misses seconds.
func (p *progress) tell(w load.Window) {
	select {
	case p.windows <- w:
	default:
	}
}

// stop ends it and clears the line.
func (p *progress) stop() {
	if p.windows != nil {
		close(p.windows)
		<-p.ended
	}
}

func (p *progress) show(out io.Writer, d time.Duration, requests int) {
	defer close(p.ended)
	var sent uint64
	for w := range p.windows {
		sent += w.Requests()
		done := 0.0
		if d > 0 {
			done = float64(w.Second+1) / d.Seconds()
		}
		if requests > 0 {
			done = max(done, float64(sent)/float64(requests))
		}
		fmt.Fprint(out, "\r\x1b[K"+line(w, min(done, 1)))
	}
	fmt.Fprint(out, "\r\x1b[K")
}

// line is what a second looks like, with the part of the load that is done.
func line(w load.Window, done float64) string {
	const width = 24
	full := int(done * width)
	text := fmt.Sprintf("[%s%s] %3.0f %%  %d/s  p50 %.0f us  p99 %.0f us", strings.Repeat("#", full), strings.Repeat(".", width-full),
		100*done, w.Requests(), w.P50, w.P99)
	for _, n := range []struct {
		what  string
		count uint64
	}{
		{"misses", w.Misses}, {"origin", w.Fetches}, {"errors", w.Errors}, {"stale", w.Stale}, {"wrong", w.Wrong},
		{"unanswered", w.Unanswered}, {"late", w.NotInTime},
	} {
		if n.count > 0 {
			text += fmt.Sprintf("  %s %d", n.what, n.count)
		}
	}
	return text
}
