package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cacherouter/memproto"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waiting for what must come.
const patience = time.Minute

// receiver is a collector that takes OTLP over HTTP, in the words of its official schema.
type receiver struct {
	*httptest.Server
	got      chan *collector.ExportTraceServiceRequest
	status   atomic.Int32  // of the answer, if not 0
	rejects  atomic.Int64  // spans
	hang     chan struct{} // answers come when it is closed; nil if at once
	requests atomic.Int32
}

func receive(t *testing.T, hang bool) *receiver {
	r := &receiver{got: make(chan *collector.ExportTraceServiceRequest, 100)}
	if hang {
		r.hang = make(chan struct{})
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.requests.Add(1)
		if r.hang != nil {
			<-r.hang
		}
		var m collector.ExportTraceServiceRequest
		b, err := io.ReadAll(q.Body)
		if err == nil {
			err = proto.Unmarshal(b, &m)
		}
		if err != nil || q.URL.Path != "/v1/traces" || q.Method != "POST" || q.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %v: %v", q.Method, q.URL, q.Header, err)
		}
		if s := r.status.Load(); s != 0 {
			w.WriteHeader(int(s))
			return
		}
		r.got <- &m
		var answer collector.ExportTraceServiceResponse
		if n := r.rejects.Load(); n > 0 {
			answer.PartialSuccess = &collector.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: "too old"}
		}
		b, _ = proto.Marshal(&answer)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(b)
	}))
	t.Cleanup(r.Close)
	return r
}

// running is an exporter that runs until the end of the test, or stop.
type running struct {
	*Exporter
	stop func()
}

func run(t *testing.T, c Config) *running {
	t.Helper()
	c.Service, c.Router = "cache", "r1"
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { e.Run(ctx) })
	r := &running{e, func() { cancel(); ended.Wait() }}
	t.Cleanup(r.stop)
	return r
}

func (r *running) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); {
		select {
		case <-time.After(time.Millisecond):
		case <-time.After(time.Until(deadline)):
			t.Fatalf("never: %s", what)
		}
	}
}

var began = time.Unix(1000, 0)

// asked returns the record of a get that a server has answered.
func asked() router.Record {
	return router.Record{
		Sampled: true, At: began, Client: "tcp:[::1]:5", Listener: "127.0.0.1:1", Verb: memproto.Get, Key: "k\n", Keys: 1, Server: "a",
		Way: router.Spilled, Outcome: memproto.Hit, Bytes: 7, Sent: 1, First: 2, Answered: 3, Took: 4,
	}
}

// shown draws the spans of a message: name, kind, nanoseconds from and to, events, status; those
// within another are indented.
func shown(t *testing.T, m *collector.ExportTraceServiceRequest) (lines string) {
	t.Helper()
	var spans []*tracepb.Span
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			spans = append(spans, ss.Spans...)
		}
	}
	draw := func(s *tracepb.Span, indent string) {
		lines += fmt.Sprintf("%s%s %s %d-%d", indent, s.Name, strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), s.StartTimeUnixNano-uint64(began.UnixNano()), s.EndTimeUnixNano-uint64(began.UnixNano()))
		for _, e := range s.Events {
			lines += fmt.Sprintf(", %s at %d", e.Name, e.TimeUnixNano-uint64(began.UnixNano()))
		}
		if msg := s.GetStatus().GetMessage(); msg != "" {
			lines += ": " + msg
		}
		lines += "\n"
	}
	for _, whole := range spans {
		if len(whole.ParentSpanId) > 0 {
			continue
		}
		draw(whole, "")
		for _, s := range spans {
			if bytes.Equal(s.ParentSpanId, whole.SpanId) && bytes.Equal(s.TraceId, whole.TraceId) {
				draw(s, " ")
			}
		}
	}
	return lines
}

// The collector gets a span for each request and for each of its phases, with what is known
// of it.
func TestSpans(t *testing.T) {
	c := receive(t, false)
	e := run(t, Config{Endpoint: c.URL})
	hit, near, gone, bad, unsampled := asked(), asked(), asked(), asked(), asked()
	near.Server, near.Way, near.Sent, near.First, near.Answered, near.Took = "", router.Near, 0, 0, 0, 0
	gone.Gone, gone.Answered, gone.First, gone.Took = true, 0, 0, 9
	bad.Outcome, bad.Sent, bad.Took = memproto.Faulty, 0, 3
	unsampled.Sampled = false
	e.Take([]router.Record{hit, unsampled, near, gone, bad})
	e.stop()
	m := <-c.got
	want := `get SERVER 0-4
 wait INTERNAL 0-1
 server CLIENT 1-3, first byte at 2
 reply INTERNAL 3-4
get SERVER 0-0
get SERVER 0-9: the client was gone
 wait INTERNAL 0-1
 server CLIENT 1-9
get SERVER 0-3: answered with an error
 server CLIENT 0-3, first byte at 2
`
	if diff := cmp.Diff(want, shown(t, m)); diff != "" {
		t.Error(diff)
	}
	about := make(map[string]string)
	for _, a := range m.ResourceSpans[0].Resource.Attributes {
		about[a.Key] = a.Value.GetStringValue()
	}
	if about["service.name"] != "cache" || about["service.instance.id"] != "r1" {
		t.Errorf("the spans are of %v", about)
	}
	clear(about)
	for _, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
		if s.Name == "get" && s.EndTimeUnixNano-s.StartTimeUnixNano == 4 {
			for _, a := range s.Attributes {
				about[a.Key] = fmt.Sprint(a.Value.GetStringValue(), a.Value.GetIntValue())
			}
		}
	}
	wantAbout := map[string]string{
		"db.system.name": "memcached0", "db.operation.name": "get0", "client.address": "::10", "client.port": "5",
		"cacherouter.listener": "127.0.0.1:10", "cacherouter.key": `k\n0`, "cacherouter.keys": "1", "cacherouter.decided": "spilled0",
		"cacherouter.outcome": "hit0", "cacherouter.bytes": "7",
	}
	if diff := cmp.Diff(wantAbout, about); diff != "" {
		t.Error(diff)
	}
	if e.Exported() != 10 || e.Refused()+e.Crowded() != 0 {
		t.Errorf("%d exported, %d refused, %d crowded out", e.Exported(), e.Refused(), e.Crowded())
	}
}

// A collector that answers with errors, or takes a part, costs spans, which are counted; that it
// does, and that it does no longer, is logged once.
func TestRefusingCollector(t *testing.T) {
	var log bytes.Buffer
	c := receive(t, false)
	e := run(t, Config{Endpoint: c.URL + "/", Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.status.Store(http.StatusServiceUnavailable)
	for n := uint64(1); n <= 2; n++ {
		e.Take([]router.Record{asked()})
		e.until(t, "spans are refused", func() bool { return e.Refused() == 4*n })
	}
	c.status.Store(0)
	c.rejects.Store(1)
	e.Take([]router.Record{asked()})
	e.until(t, "spans are taken", func() bool { return e.Exported() == 3 })
	e.stop()
	if e.Refused() != 9 {
		t.Errorf("%d were refused, want 9", e.Refused())
	}
	if got := log.String(); strings.Count(got, "traces are lost") != 1 || strings.Count(got, "503") != 1 || strings.Count(got, "sent again") != 1 {
		t.Errorf("logged: %s", got)
	}
}

// Neither a collector that hangs nor one that is not there holds up anybody: what it does not
// take is counted, and stopping does not wait for it.
func TestHangingCollector(t *testing.T) {
	c := receive(t, true)
	defer close(c.hang) // before it is closed, which waits
	e := run(t, Config{Endpoint: c.URL, Timeout: patience})
	e.Take([]router.Record{asked()})
	e.until(t, "the collector is told", func() bool { return c.requests.Load() == 1 })
	some := make([]router.Record, queued+100)
	for i := range some {
		some[i] = asked()
	}
	e.Take(some)
	if e.Crowded() != 100 {
		t.Errorf("%d had no room, want 100", e.Crowded())
	}
	before := time.Now()
	e.stop()
	if took := time.Since(before); took > patience/2 {
		t.Errorf("stopping took %v", took)
	}
	if e.Exported() != 0 || e.Refused() < 4 {
		t.Errorf("%d exported, %d refused", e.Exported(), e.Refused())
	}
}

func TestCollectorIsDown(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	e := run(t, Config{Endpoint: "http://" + ln.Addr().String()})
	e.Take([]router.Record{asked()})
	e.until(t, "spans are refused", func() bool { return e.Refused() == 4 })
}

func TestEndpoints(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:4318": "http://h:4318/v1/traces", "https://h/": "https://h/v1/traces", "http://h/x/y": "http://h/x/y",
		"h:4318": "", "grpc://h": "", "http://": "", "": "", "http://h:x": "",
	} {
		u, err := ParseEndpoint(in)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), `"`+in+`"`)):
			t.Errorf("%q: %v, %v", in, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: %v, %v; want %s", in, u, err, want)
		}
	}
}
