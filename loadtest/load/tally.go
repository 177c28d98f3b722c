//go:build linux

package load

import (
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in nanoseconds, to three digits, up to a minute; longer ones count as a minute.
const (
	slowest = int64(time.Minute)
	digits  = 3
)

// tally is what one lane has counted. It is not safe for concurrent use.
type tally struct {
	Counts
	latency     *hdrhistogram.Histogram
	firstWrong  string
	firstError  string
	firstBroken error
}

func newTally() *tally {
	return &tally{latency: hdrhistogram.New(1, slowest, digits)}
}

func (t *tally) took(d time.Duration) {
	// The value is clamped to the histogram's range, so recording it cannot fail.
	_ = t.latency.RecordValue(min(max(int64(d), 1), slowest))
}

// judge counts the reply r to the request q.
func (t *tally) judge(k *keyspace, q call, r reply) {
	switch {
	case r.kind == replyRefused:
		t.Errors++
		if t.firstError == "" {
			t.firstError = string(r.line)
		}
	case q.op == opSet && r.kind == replyStored:
		t.Stored++
	case q.op == opGet && r.kind == replyMiss:
		t.Misses++
	case q.op == opGet && r.kind == replyHit && k.holds(q.key, r):
		t.Hits++
	default:
		t.Wrong++
		if t.firstWrong == "" {
			t.firstWrong = describeWrong(k, q, r)
		}
	}
}

func describeWrong(k *keyspace, q call, r reply) string {
	asked := "get "
	if q.op == opSet {
		asked = "set "
	}
	got := string(r.line)
	if r.kind == replyHit {
		got += " " + string(r.data[:min(len(r.data), shownOfReply)])
	}
	return asked + string(k.key(q.key)) + " was answered " + strconv.Quote(got)
}

// add merges o into t.
func (t *tally) add(o *tally) {
	t.Counts.add(o.Counts)
	t.latency.Merge(o.latency)
	if t.firstWrong == "" {
		t.firstWrong = o.firstWrong
	}
	if t.firstError == "" {
		t.firstError = o.firstError
	}
	if t.firstBroken == nil {
		t.firstBroken = o.firstBroken
	}
}
