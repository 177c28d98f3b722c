// Package tracing tells an OpenTelemetry collector of sampled requests: a span for each, and in
// it one for each of its phases. They are sent by OTLP over HTTP. What the collector does not
// take in time is lost and counted, and nobody waits for it.
//
// The SDK's own client of that protocol is linked with all of gRPC and makes a binary 8 MB
// larger; posting the message, which is all there is to do, makes it 1 MB larger.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"cacherouter/router"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Config says who is told.
type Config struct {
	// Endpoint is the collector's URL; without a path it is that of OTLP, /v1/traces.
	Endpoint string
	// Service and Router are what the spans are said to be of: service.name and
	// service.instance.id.
	Service, Router string
	// Timeout is how long the collector may take to take a message; 0 means DefaultTimeout.
	Timeout time.Duration
	// Log gets changes of state; nil means slog.Default.
	Log *slog.Logger
}

// DefaultTimeout is how long the collector may take to take a message.
const DefaultTimeout = 10 * time.Second

const (
	// queued is how many requests may wait to be sent, and batch how many go in a message.
	queued, batch = 4096, 512
	// every is how often a message goes out while there is something to tell.
	every = time.Second
	// goodbye is how long the last messages may take.
	goodbye = 2 * time.Second
)

// Exporter sends spans. It is a sink of accesslog.
type Exporter struct {
	log      *slog.Logger
	waiting  chan router.Record
	spans    spans
	client   *client
	exporter *otlptrace.Exporter
	failing  bool

	exported, crowded, refused atomic.Uint64
}

// ParseEndpoint reads the URL of a collector.
func ParseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no URL: %w", s, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("%q is no URL such as http://127.0.0.1:4318", s)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// New returns an exporter that [Exporter.Run] sets going. It does not look whether the
// collector is there.
func New(c Config) (*Exporter, error) {
	u, err := ParseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	e := &Exporter{log: c.Log, waiting: make(chan router.Record, queued), client: newClient(u.String(), c.Timeout)}
	e.exporter = otlptrace.NewUnstarted(e.client)
	e.spans.begin(resource.NewSchemaless(
		attribute.String("service.name", c.Service), attribute.String("service.instance.id", c.Router)))
	return e, nil
}

// Take takes sampled requests. It does not wait.
func (e *Exporter) Take(records []router.Record) {
	for i := range records {
		if !records[i].Sampled {
			continue
		}
		select {
		case e.waiting <- records[i]:
		default:
			e.crowded.Add(1)
		}
	}
}

// Exported returns how many spans the collector has taken. Any goroutine may call it.
func (e *Exporter) Exported() uint64 { return e.exported.Load() }

// Refused returns how many spans the collector did not take, or not in time. Any goroutine may
// call it.
func (e *Exporter) Refused() uint64 { return e.refused.Load() }

// Crowded returns how many requests got no spans, as too many waited. Any goroutine may call
// it.
func (e *Exporter) Crowded() uint64 { return e.crowded.Load() }

// Run sends what it is given until ctx ends, and then what is left, if that goes fast.
func (e *Exporter) Run(ctx context.Context) {
	defer e.client.close()
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer cancel()
			e.send(last)
			return
		case <-look.C:
			e.send(ctx)
		}
	}
}

// send sends all that waits, until ctx ends.
func (e *Exporter) send(ctx context.Context) {
	for ctx.Err() == nil && e.take() {
		spans := len(e.spans.ended)
		err := e.exporter.ExportSpans(ctx, e.spans.ended)
		refused := min(e.client.rejected, spans)
		if err != nil {
			refused = spans
		}
		e.refused.Add(uint64(refused))
		e.exported.Add(uint64(spans - refused))
		e.note(err)
	}
}

// take makes spans of the next requests that wait, and reports whether there are any.
func (e *Exporter) take() bool {
	e.spans.clear()
	for e.spans.requests < batch {
		select {
		case r := <-e.waiting:
			e.spans.add(&r)
			continue
		default:
		}
		break
	}
	return e.spans.requests > 0
}

// note logs once that the collector does not take spans, and that it does again.
func (e *Exporter) note(err error) {
	switch {
	case err != nil && !e.failing:
		e.log.Warn("traces are lost", "err", err)
	case err == nil && e.failing:
		e.log.Info("traces are sent again")
	}
	e.failing = err != nil
}
