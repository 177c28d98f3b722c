//go:build linux

package scale

import (
	"fmt"
	"io"
	"text/tabwriter"

	"cacherouter/loadtest/paired"
)

// WriteText writes outcomes as a table.
func WriteText(out io.Writer, all []Outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "dimension\tpoint\t"+paired.Header+"CPU / first\thalf in\tstart s\tMiB then\tMiB after\t")
	for _, o := range all {
		for _, p := range o.Points {
			start, then := "-", "-"
			if p.Start > 0 {
				start, then = fmt.Sprintf("%.2f", p.Start), mib(p.AtStart)
			}
			fmt.Fprintf(w, "%s\t%s\t%s%.3f\t%.3f-%.3f\t%s\t%s\t%s\t\n",
				o.Dimension, p.Value, p.Median.Row(), p.Ratio.Median, p.Ratio.Low, p.Ratio.High, start, then, mib(p.Resident))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range all {
		if len(o.Failed) > 0 {
			fmt.Fprintf(out, "%s: %d rounds failed, the first: %s\n", o.Dimension, len(o.Failed), o.Failed[0])
		}
	}
	return nil
}

func mib(bytes uint64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
