//go:build linux

package peers

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// newSample divides what the contender and the generator have used by the requests of r.
func newSample(contender, generator process.Cost, r load.Result) Sample {
	n := float64(max(r.Answered(), 1))
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return Sample{
		CPU:       us(contender.CPU) / n,
		Load:      contender.CPU.Seconds() / r.Seconds,
		Switches:  float64(contender.Switches) / n,
		Rate:      r.Rate,
		P50:       r.Latency.P50,
		P99:       r.Latency.P99,
		Generator: us(generator.CPU) / n,
	}
}

// Sample is what one run of one contender measured; a median of samples has the same form.
type Sample struct {
	CPU       float64 `json:"cpu_us"`           // processor time of the contender per request, microseconds
	Load      float64 `json:"load"`             // the same per second, in processors
	Switches  float64 `json:"context_switches"` // per request
	Rate      float64 `json:"rate"`             // requests per second
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Generator float64 `json:"generator_cpu_us"` // processor time of the load generator per request, microseconds
}

func (s Sample) of(m Measure) float64 {
	if m == P50 {
		return s.P50
	}
	return s.CPU
}

// Outcome is the comparison for one shape. The arrays are in the order ours, against, direct.
type Outcome struct {
	Shape   Shape       `json:"shape"`
	Samples [3][]Sample `json:"samples"`
	Medians [3]Sample   `json:"medians"`
	Ratio   float64     `json:"ratio"` // the median of the pairs' ratios of the shape's measure, 0 without a pair
	Low     float64     `json:"ratio_quartile_1"`
	High    float64     `json:"ratio_quartile_3"`
	Failed  []string    `json:"failed,omitempty"` // why rounds were left out
}

// Met reports whether the target was reached.
func (o Outcome) Met() bool { return o.Ratio > 0 && o.Ratio <= o.Shape.Target }

// add takes one round, so that the samples of one index are a pair.
func (o *Outcome) add(round [3]Sample) {
	for i, s := range round {
		o.Samples[i] = append(o.Samples[i], s)
	}
}

func (o *Outcome) conclude() {
	for i, samples := range o.Samples {
		o.Medians[i] = medianSample(samples)
	}
	var ratios []float64
	for i := range min(len(o.Samples[0]), len(o.Samples[1])) {
		ratios = append(ratios, o.Samples[0][i].of(o.Shape.Measure)/o.Samples[1][i].of(o.Shape.Measure))
	}
	if len(ratios) > 0 {
		o.Ratio, o.Low, o.High = median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)
	}
}

func medianSample(s []Sample) Sample {
	of := func(field func(Sample) float64) float64 {
		var all []float64
		for _, x := range s {
			all = append(all, field(x))
		}
		return median(all)
	}
	return Sample{
		CPU:       of(func(x Sample) float64 { return x.CPU }),
		Load:      of(func(x Sample) float64 { return x.Load }),
		Switches:  of(func(x Sample) float64 { return x.Switches }),
		Rate:      of(func(x Sample) float64 { return x.Rate }),
		P50:       of(func(x Sample) float64 { return x.P50 }),
		P99:       of(func(x Sample) float64 { return x.P99 }),
		Generator: of(func(x Sample) float64 { return x.Generator }),
	}
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile interpolates between the two nearest of v, as spreadsheets do; of no values it is 0.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	at := q * float64(len(v)-1)
	low := int(at)
	high := min(low+1, len(v)-1)
	return v[low] + (at-float64(low))*(v[high]-v[low])
}

// Report is a whole comparison.
type Report struct {
	Contenders [3]string `json:"contenders"` // ours, against, direct
	Pairs      int       `json:"pairs"`
	Seconds    float64   `json:"seconds"` // of one run
	Layout     Layout    `json:"layout"`
	Outcomes   []Outcome `json:"outcomes"`
	Idle       []Idle    `json:"idle,omitempty"`
}

func newReport(c Config, s *stage) *Report {
	r := &Report{Pairs: c.Pairs, Seconds: c.Duration.Seconds(), Layout: c.Layout}
	for i, x := range s.contenders {
		r.Contenders[i] = x.name
	}
	return r
}

// WriteText writes r as a table.
func (r *Report) WriteText(out io.Writer) error {
	if len(r.Outcomes) > 0 {
		if err := r.writeTable(out); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s / %s, medians over pairs of %.1f s runs, layout %s:\n",
			r.Contenders[0], r.Contenders[1], r.Seconds, r.Layout)
	}
	return r.writeVerdicts(out)
}

func (r *Report) writeTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "load\tcontender\tCPU us/req\tbusy\treq/s\tp50 us\tp99 us\tswitches/req\tgenerator us/req\t")
	for _, o := range r.Outcomes {
		shape := fmt.Sprintf("%d conns, pipeline %d", o.Shape.Connections, o.Shape.Pipeline)
		for i, m := range o.Medians {
			if len(o.Samples[i]) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%.2f\t%.0f%%\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t\n", shape, r.Contenders[i],
				m.CPU, 100*m.Load, m.Rate, m.P50, m.P99, m.Switches, m.Generator)
		}
	}
	return w.Flush()
}

func (r *Report) writeVerdicts(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, o := range r.Outcomes {
		o.writeVerdict(w)
	}
	for _, i := range r.Idle {
		i.write(w)
	}
	return w.Flush()
}

func (o Outcome) writeVerdict(w io.Writer) {
	if pairs := min(len(o.Samples[0]), len(o.Samples[1])); pairs > 0 {
		fmt.Fprintf(w, "%s, %d conns, pipeline %d\t%.3f\t(%d pairs, half in %.3f-%.3f)\ttarget <= %.2f\t%s\n", o.Shape.Measure,
			o.Shape.Connections, o.Shape.Pipeline, o.Ratio, pairs, o.Low, o.High, o.Shape.Target, verdict(o.Met()))
	}
	if len(o.Failed) > 0 {
		fmt.Fprintf(w, "%d rounds failed, the first: %s\n", len(o.Failed), o.Failed[0])
	}
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}
