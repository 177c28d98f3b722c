//go:build linux

package peers

import (
	"fmt"
	"io"
	"text/tabwriter"

	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
)

// Sample is what one run of one contender measured.
type Sample = paired.Sample

// of is the measure's figure of s.
func (m Measure) of(s Sample) float64 {
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

func (o *Outcome) conclude() {
	for i, samples := range o.Samples {
		o.Medians[i] = paired.Median(samples)
	}
	measure := o.Shape.Measure.of
	r := paired.Compare(o.Samples[:2], func(round []Sample) float64 { return measure(round[0]) / measure(round[1]) })
	o.Ratio, o.Low, o.High = r.Median, r.Low, r.High
}

// Report is a whole comparison.
type Report struct {
	Contenders [3]string      `json:"contenders"` // ours, against, direct
	Pairs      int            `json:"pairs"`
	Seconds    float64        `json:"seconds"` // of one run
	Layout     process.Layout `json:"layout"`
	Outcomes   []Outcome      `json:"outcomes"`
	Idle       []Idle         `json:"idle,omitempty"`
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
	fmt.Fprintln(w, "load\tcontender\t"+paired.Header)
	for _, o := range r.Outcomes {
		shape := fmt.Sprintf("%d conns, pipeline %d", o.Shape.Connections, o.Shape.Pipeline)
		for i, m := range o.Medians {
			if len(o.Samples[i]) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", shape, r.Contenders[i], m.Row())
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
