package main

import (
	"context"
	"log/slog"
	"sync"

	"cacherouter/accesslog"
	"cacherouter/admin"
	"cacherouter/router"
	"cacherouter/tracing"
)

// records are those who take the records of single requests. The zero value is nobody.
type records struct {
	queue  *accesslog.Queue  // nil if nobody wants any
	lines  *accesslog.Lines  // nil if there are none
	slow   *accesslog.Slow   // nil if none is slow
	traces *tracing.Exporter // nil if nobody is told
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// start starts those that the configuration asks for.
func (r *records) start(cfg *config, log *slog.Logger) (err error) {
	c := &cfg.Log
	var sinks []accesslog.Sink
	if c.Requests.Every > 0 && c.Requests.File != "" {
		if r.lines, err = accesslog.OpenLines(c.Requests.File, log); err != nil {
			return badField(err, "log", "requests", "file")
		}
		sinks = append(sinks, r.lines)
	}
	if c.Slow.Over > 0 {
		r.slow = accesslog.NewSlow(c.Slow.Keep, log)
		sinks = append(sinks, r.slow)
	}
	if c.Traces.Endpoint != "" {
		r.traces, err = tracing.New(tracing.Config{Endpoint: c.Traces.Endpoint, Service: c.Traces.Service, Router: cfg.routerName(), Log: log})
		if err != nil {
			return badField(err, "log", "traces", "endpoint")
		}
		sinks = append(sinks, r.traces)
	}
	if len(sinks) > 0 {
		r.run(sinks)
	}
	return nil
}

// run sets them going.
func (r *records) run(sinks []accesslog.Sink) {
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.queue = accesslog.NewQueue(sinks...)
	r.ended.Go(func() { r.queue.Run(ctx) })
	if r.traces != nil {
		r.ended.Go(func() { r.traces.Run(ctx) })
	}
}

// put returns what the loops give records to; nil if nobody wants any.
func (r *records) put() func(*router.Record) {
	if r.queue == nil {
		return nil
	}
	return r.queue.Put
}

// reopen opens the file of lines anew, as it may have been renamed.
func (r *records) reopen(log *slog.Logger) {
	if r.lines == nil {
		return
	}
	if err := r.lines.Reopen(); err != nil {
		log.Error("the log of requests goes on to the old file", "err", err)
	}
}

// close ends them, when no more records come.
func (r *records) close(log *slog.Logger) {
	if r.cancel != nil {
		r.cancel()
		r.ended.Wait()
	}
	if r.lines != nil {
		if err := r.lines.Close(); err != nil {
			log.Warn("the log of requests may not be complete", "err", err)
		}
	}
}

// counts returns what has become of the records.
func (r *records) counts() (c admin.RecordCounts) {
	if r.queue != nil {
		c.Crowded = r.queue.Lost()
	}
	if r.lines != nil {
		c.Lines, c.Unwritten = r.lines.Written(), r.lines.Lost()
	}
	if r.traces != nil {
		c.Spans, c.SpansRefused, c.Untraced = r.traces.Exported(), r.traces.Refused(), r.traces.Crowded()
	}
	return c
}
