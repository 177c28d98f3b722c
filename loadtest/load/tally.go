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

// tally is what one driver has counted. It is not safe for concurrent use.
type tally struct {
	Counts
	latency     *hdrhistogram.Histogram // from when a request was due to the read of its reply
	delay       *hdrhistogram.Histogram // from then to the write of those that found a connection free; nil in a closed loop
	firstWrong  string
	firstStale  string
	firstError  string
	firstBroken error
	started     int   // requests of an open loop, those of several keys once
	lastSent    int64 // when the last request was, nanoseconds of the run
	pulse       pulse
}

func newTally() *tally {
	return &tally{latency: hdrhistogram.New(1, slowest, digits)}
}

// record clamps a time to the histogram's range, so that recording it cannot fail.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1), slowest))
}

func (t *tally) took(d time.Duration) {
	record(t.latency, d)
	t.pulse.took(d)
}

// judge counts the reply r to the call q, which came at a second of the wall clock, and ends q if it is a write.
func (t *tally) judge(k *keyspace, q call, r reply, second uint32) {
	if q.op == opSet && k.writes != nil {
		dies := q.ttl
		if dies != 0 {
			dies += second
		}
		k.writes.end(q.key, q.version, r.kind == replyStored, dies)
	}
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
		if k.writes != nil && k.writes.lost(q.key, q.mark, second) {
			t.Lost++
		}
	case q.op == opGet && r.kind == replyHit:
		t.judgeHit(k, q, r)
	default:
		t.wrong(k, q, r)
	}
}

func (t *tally) judgeHit(k *keyspace, q call, r reply) {
	version, ok := k.holds(q.key, r)
	v := fresh
	if ok && k.writes != nil {
		v = k.writes.judge(q.key, q.mark, version)
	}
	switch {
	case !ok || v == wrong:
		t.wrong(k, q, r)
	case v == stale:
		t.Stale++
		if t.firstStale == "" {
			t.firstStale = "get " + string(k.key(q.key)) + " returned write " + strconv.Itoa(int(version)) +
				", write " + strconv.Itoa(int(q.mark.floor)) + " or a later one had replaced it"
		}
	case v == late:
		t.Late++
	default:
		t.Hits++
	}
}

func (t *tally) wrong(k *keyspace, q call, r reply) {
	t.Wrong++
	if t.firstWrong == "" {
		t.firstWrong = describeWrong(k, q, r)
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
	if t.delay != nil {
		t.delay.Merge(o.delay)
	}
	t.started += o.started
	t.lastSent = max(t.lastSent, o.lastSent)
	for _, first := range []struct{ into, from *string }{
		{&t.firstWrong, &o.firstWrong}, {&t.firstStale, &o.firstStale}, {&t.firstError, &o.firstError},
	} {
		if *first.into == "" {
			*first.into = *first.from
		}
	}
	if t.firstBroken == nil {
		t.firstBroken = o.firstBroken
	}
}
