package main

import (
	"errors"
	"fmt"
	"time"

	"cacherouter/accesslog"
	"cacherouter/router"
	"cacherouter/tracing"
)

// logConfig says what is told of single requests.
type logConfig struct {
	Requests requestsConfig `yaml:"requests" doc:"Some requests, sampled; see requests.md."`
	Slow     slowConfig     `yaml:"slow" doc:"Requests that take long."`
	Traces   tracesConfig   `yaml:"traces" doc:"The sampled requests as OpenTelemetry traces."`
}

// requestsConfig says which requests are sampled.
type requestsConfig struct {
	Every int    `yaml:"every" doc:"One in so many requests of each loop is sampled: 1 is all, 0 none."`
	File  string `yaml:"file" doc:"File that gets each as a line of JSON, opened again on SIGHUP; stderr is the standard error, and empty means that there are no lines."`
}

// slowConfig says which requests are slow.
type slowConfig struct {
	Over duration `yaml:"over" doc:"From how long on a request is slow: it is logged and remembered for /api/v1/slow. 0s means never."`
	Rate int      `yaml:"rate" doc:"How many a second that happens to at most; all are counted."`
	Keep int      `yaml:"keep" doc:"How many are remembered."`
}

// tracesConfig says who gets traces.
type tracesConfig struct {
	Endpoint string `yaml:"endpoint" doc:"URL of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; empty means that there are no traces. Needs log.requests.every."`
	Service  string `yaml:"service" doc:"The name under which they are told, service.name."`
}

func defaultLog() logConfig {
	return logConfig{
		Requests: requestsConfig{File: accesslog.Stderr},
		Slow:     slowConfig{Rate: 10, Keep: 100},
		Traces:   tracesConfig{Service: "cacherouter"},
	}
}

// maxKept is how many slow requests may be remembered.
const maxKept = 10000

func (l *logConfig) validate() error {
	switch {
	case l.Requests.Every < 0:
		return badField(fmt.Errorf("%d is negative", l.Requests.Every), "log", "requests", "every")
	case l.Slow.Rate < 1:
		return badField(fmt.Errorf("%d is less than 1", l.Slow.Rate), "log", "slow", "rate")
	case l.Slow.Keep < 1 || l.Slow.Keep > maxKept:
		return badField(fmt.Errorf("%d is not between 1 and %d", l.Slow.Keep, maxKept), "log", "slow", "keep")
	case l.Traces.Endpoint == "":
		return nil
	case l.Requests.Every == 0:
		return badField(errors.New("needs log.requests.every: which requests are traced"), "log", "traces", "endpoint")
	}
	_, err := tracing.ParseEndpoint(l.Traces.Endpoint)
	return badField(err, "log", "traces", "endpoint")
}

// recording returns which requests are recorded, for whoever takes the records.
func (l *logConfig) recording(to func(*router.Record)) router.Recording {
	return router.Recording{To: to, Every: l.Requests.Every, Over: time.Duration(l.Slow.Over), SlowRate: l.Slow.Rate}
}
