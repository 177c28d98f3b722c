//go:build linux

package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/loadtest/load"
)

const pageHead = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>load test</title>
<style>body{font-family:sans-serif;max-width:60em;margin:2em auto}td{padding:.15em .6em;vertical-align:top}td:first-child{color:#666}.bad{color:#c33;white-space:pre-line}svg{max-width:100%;height:auto}</style>
</head><body><h1>Load test</h1>
`

// WriteHTML writes a page: the table, and plots of latency, of rates over time, and of the servers' load. It
// loads nothing from anywhere.
func (o Outcome) WriteHTML(out io.Writer) error {
	var b strings.Builder
	b.WriteString(pageHead)
	if o.Error != "" {
		fmt.Fprintf(&b, "<p class=\"bad\">%s</p>\n", html.EscapeString(o.Error))
	}
	b.WriteString("<table>\n")
	for _, r := range o.rows() {
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%s</td></tr>\n", html.EscapeString(r.name), html.EscapeString(r.text))
	}
	b.WriteString("</table>\n")
	if err := plot.Write(&b, o.charts()); err != nil {
		return err
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (o Outcome) charts() []plot.Chart {
	all := []plot.Chart{
		{Title: "Latency by percentile", X: "nines: 1 is 90 %, 2 is 99 %, 3 is 99.9 %", Y: "us", Log: true, Series: []plot.Series{percentiles("latency", o.Curve)}},
		{Title: "Latency over time", X: "seconds", Y: "us", Log: true, Series: []plot.Series{
			o.over("p50", func(w load.Window) float64 { return w.P50 }),
			o.over("p99", func(w load.Window) float64 { return w.P99 }),
			o.over("max", func(w load.Window) float64 { return w.Max }),
		}},
		{Title: "Rate over time", X: "seconds", Y: "thousands a second", Series: o.rates()},
	}
	if len(o.Servers) > 0 {
		all = append(all, o.serverBars(), o.serverLines())
	}
	return all
}

// percentiles spreads the shares near to all.
func percentiles(name string, curve []load.Point) plot.Series {
	s := plot.Series{Name: name}
	for _, p := range curve {
		s.X = append(s.X, math.Log10(100/(100-p.Share)))
		s.Y = append(s.Y, p.Time)
	}
	return s
}

// over is a figure of each whole second.
func (o Outcome) over(name string, of func(load.Window) float64) plot.Series {
	s := plot.Series{Name: name}
	for _, w := range o.Series {
		if float64(w.Second+1) > o.Seconds && len(o.Series) > 1 {
			break // it was not whole
		}
		s.X = append(s.X, float64(w.Second))
		s.Y = append(s.Y, of(w))
	}
	return s
}

// rates are those that say something.
func (o Outcome) rates() []plot.Series {
	all := []plot.Series{o.over("answered", func(w load.Window) float64 { return answered(w.Counts) / 1e3 })}
	for _, more := range []struct {
		name string
		of   func(load.Counts) uint64
	}{
		{"misses", func(c load.Counts) uint64 { return c.Misses }},
		{"origin asked", func(c load.Counts) uint64 { return c.Fetches }},
		{"errors", func(c load.Counts) uint64 { return c.Errors }},
		{"stale or wrong", func(c load.Counts) uint64 { return c.Stale + c.Wrong }},
		{"no free connection", func(c load.Counts) uint64 { return c.NotInTime }},
	} {
		if more.of(o.Counts) > 0 {
			all = append(all, o.over(more.name, func(w load.Window) float64 { return float64(more.of(w.Counts)) / 1e3 }))
		}
	}
	return all
}

// answered is how many answers came in a second, whenever they were asked for.
func answered(c load.Counts) float64 {
	return float64(c.Hits + c.Late + c.Stale + c.Misses + c.Stored + c.Errors + c.Wrong)
}

func (o Outcome) serverBars() plot.Chart {
	c := plot.Chart{Title: "Load of the servers, by their own counters", X: "server", Y: "thousands of requests", Series: []plot.Series{{Name: "gets"}, {Name: "sets"}}}
	for _, s := range o.Servers {
		c.Groups = append(c.Groups, s.Addr)
		c.Series[0].Y = append(c.Series[0].Y, float64(s.Gets)/1e3)
		c.Series[1].Y = append(c.Series[1].Y, float64(s.Sets)/1e3)
	}
	return c
}

func (o Outcome) serverLines() plot.Chart {
	c := plot.Chart{Title: "Load of the servers over time", X: "seconds", Y: "thousands of requests a second"}
	for _, server := range o.Servers {
		s := plot.Series{Name: server.Addr}
		for i, n := range server.PerSecond {
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(n)/1e3)
		}
		c.Series = append(c.Series, s)
	}
	return c
}
