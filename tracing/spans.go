package tracing

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"cacherouter/accesslog"
	"cacherouter/memproto"
	"cacherouter/router"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spans makes the spans of requests that are over, and gathers them.
type spans struct {
	tracer   trace.Tracer
	ended    []sdk.ReadOnlySpan
	requests int
}

// begin says what the spans are of.
func (s *spans) begin(of *resource.Resource) {
	p := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(of), sdk.WithSpanProcessor(s))
	s.tracer = p.Tracer("cacherouter")
}

func (s *spans) clear() {
	clear(s.ended)
	s.ended, s.requests = s.ended[:0], 0
}

// OnEnd implements sdk.SpanProcessor, as do those below.
func (s *spans) OnEnd(one sdk.ReadOnlySpan) { s.ended = append(s.ended, one) }

// OnStart has nothing to do.
func (s *spans) OnStart(context.Context, sdk.ReadWriteSpan) {}

// Shutdown has nothing to do.
func (s *spans) Shutdown(context.Context) error { return nil }

// ForceFlush has nothing to do.
func (s *spans) ForceFlush(context.Context) error { return nil }

// add makes the spans of a request: its own, and within that the wait before a server was
// asked, the server, and the wait for replies to earlier requests.
func (s *spans) add(r *router.Record) {
	s.requests++
	ctx, whole := s.tracer.Start(context.Background(), r.Verb.String(), trace.WithTimestamp(r.At),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(about(r)...))
	switch {
	case r.Gone:
		whole.SetStatus(codes.Error, "the client was gone")
	case r.Outcome == memproto.Faulty:
		whole.SetStatus(codes.Error, "answered with an error")
	}
	s.phases(ctx, r)
	whole.End(trace.WithTimestamp(r.At.Add(r.Took)))
}

// phases makes the spans within that of a request.
func (s *spans) phases(ctx context.Context, r *router.Record) {
	answered := r.Answered
	if r.Gone {
		answered = r.Took
	}
	if r.Server != "" {
		s.phase(ctx, r, "wait", 0, r.Sent)
		asked := s.start(ctx, r, "server", r.Sent, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("cacherouter.server", r.Server)))
		if !r.Gone {
			asked.AddEvent("first byte", trace.WithTimestamp(r.At.Add(r.First)))
		}
		asked.End(trace.WithTimestamp(r.At.Add(answered)))
	}
	s.phase(ctx, r, "reply", answered, r.Took)
}

// phase makes a span, unless nothing has passed in it.
func (s *spans) phase(ctx context.Context, r *router.Record, name string, from, to time.Duration) {
	if to > from {
		s.start(ctx, r, name, from).End(trace.WithTimestamp(r.At.Add(to)))
	}
}

func (s *spans) start(ctx context.Context, r *router.Record, name string, from time.Duration, more ...trace.SpanStartOption) trace.Span {
	_, span := s.tracer.Start(ctx, name, append(more, trace.WithTimestamp(r.At.Add(from)))...)
	return span
}

// about says in the attributes of a span what a request was, by OpenTelemetry's names where it
// has any.
func about(r *router.Record) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("db.system.name", "memcached"),
		attribute.String("db.operation.name", r.Verb.String()),
		attribute.String("cacherouter.listener", r.Listener),
		attribute.String("cacherouter.key", accesslog.Quoted(r.Key)),
		attribute.Int("cacherouter.keys", r.Keys),
		attribute.String("cacherouter.decided", r.Way.String()),
		attribute.String("cacherouter.outcome", r.Outcome.String()),
		attribute.Int("cacherouter.bytes", r.Bytes),
	}
	if r.Pool != "" {
		all = append(all, attribute.String("cacherouter.pool", r.Pool))
	}
	_, at, _ := strings.Cut(r.Client, ":")
	host, port, err := net.SplitHostPort(at)
	if err != nil { // a unix socket
		return append(all, attribute.String("client.address", r.Client))
	}
	n, _ := strconv.Atoi(port) // 0 if it were none
	return append(all, attribute.String("client.address", host), attribute.Int("client.port", n))
}
