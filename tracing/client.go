package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// client posts spans to a collector. It is an otlptrace.Client for one goroutine.
type client struct {
	url      string
	http     http.Client
	rejected int // spans of the last message that the collector did not want
}

func newClient(url string, timeout time.Duration) *client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &client{url: url, http: http.Client{Transport: t, Timeout: timeout}}
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error { return nil }

func (c *client) close() { c.http.CloseIdleConnections() }

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// UploadTraces implements otlptrace.Client. The message that OTLP wants has on the wire the
// form of TracesData.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.rejected = 0
	b, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("cannot encode spans: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("cannot send spans: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("cannot send spans: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("cannot read the collector's answer: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector at %s answers %s", c.url, answer.Status)
	}
	c.rejected = rejectedSpans(body)
	return nil
}

// rejectedSpans reads how many spans a collector did not want out of its answer, an
// ExportTraceServiceResponse: field 1 is what it took in part, whose field 1 is the number.
func rejectedSpans(answer []byte) int {
	partial, _ := field(answer)
	_, n := field(partial)
	return int(n)
}

// field returns the first field with the number 1 of a message, be it bytes or a number.
func field(message []byte) (b []byte, n uint64) {
	for len(message) > 0 {
		num, typ, size := protowire.ConsumeField(message)
		if size < 0 {
			return nil, 0
		}
		if num == 1 {
			_, _, tag := protowire.ConsumeTag(message)
			switch typ {
			case protowire.BytesType:
				b, _ = protowire.ConsumeBytes(message[tag:])
			case protowire.VarintType:
				n, _ = protowire.ConsumeVarint(message[tag:])
			}
			return b, n
		}
		message = message[size:]
	}
	return nil, 0
}
