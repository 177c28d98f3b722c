package admin

import (
	"net/http"

	"cacherouter/accesslog"
)

// RecordCounts is what has become of the records of single requests.
type RecordCounts struct {
	Lines, Unwritten    uint64 // of the log of requests
	Crowded             uint64 // records that found their queue full
	Spans, SpansRefused uint64 // sent to the collector of traces, and not taken by it
	Untraced            uint64 // requests without spans, as too many waited
}

// recordMetrics are read off those counts.
var recordMetrics = newGroup("", nil,
	counter("request_log_lines_total", "Lines written to the log of requests, log.requests.file.", func(c *RecordCounts) uint64 { return c.Lines }),
	counter("request_log_unwritten_total", "Lines of the log of requests that could not be written.", func(c *RecordCounts) uint64 { return c.Unwritten }),
	counter("request_records_lost_total", "Sampled and slow requests that were not recorded, as too many records waited to be written.", func(c *RecordCounts) uint64 { return c.Crowded }),
	counter("trace_spans_total", "Spans that the collector of traces, log.traces.endpoint, has taken.", func(c *RecordCounts) uint64 { return c.Spans }),
	counter("trace_spans_refused_total", "Spans that it has not taken, or not in time.", func(c *RecordCounts) uint64 { return c.SpansRefused }),
	counter("trace_requests_lost_total", "Sampled requests that were not traced, as too many waited to be sent.", func(c *RecordCounts) uint64 { return c.Untraced }),
)

// SlowRequests is what /api/v1/slow says.
type SlowRequests struct {
	// Over is from how many seconds on a request is slow; 0 if none is.
	Over float64 `json:"over_seconds"`
	// Total is how many were slow, and Unrecorded how many of them were too many a second.
	Total      uint64            `json:"total"`
	Unrecorded uint64            `json:"unrecorded"`
	Requests   []accesslog.Entry `json:"requests"` // the latest first
}

// Limits of how many slow requests may be asked for.
const (
	defaultSlow = 20
	maxSlow     = 10000
)

// slow answers GET /api/v1/slow?last=20.
func (s *Server) slow(w http.ResponseWriter, r *http.Request) {
	last, ok := numberOf(w, r, "last", defaultSlow, maxSlow)
	if !ok {
		return
	}
	if win, ok := s.window(w, r); ok {
		reply(w, s.slowOf(win, last))
	}
}

// slowOf returns the latest slow requests.
func (s *Server) slowOf(w window, last int) SlowRequests {
	now := &w.to.total
	out := SlowRequests{Over: s.cfg.SlowOver.Seconds(), Total: now.Slow, Unrecorded: now.SlowUnrecorded, Requests: []accesslog.Entry{}}
	if s.cfg.Slow != nil {
		all := s.cfg.Slow.Last()
		out.Requests = all[:min(last, len(all))]
	}
	return out
}
