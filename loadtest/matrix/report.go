//go:build linux

package matrix

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/loadtest/paired"
)

// WriteText writes r as tables: one of all figures, one of what is to be reached.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "load\tcontender\t"+paired.Header+"calls/req\tMiB\tCPU/nutcracker\t")
	for _, o := range r.Outcomes {
		for i, m := range o.Medians {
			calls := "-"
			if o.Calls != nil && o.Calls[i] > 0 {
				calls = fmt.Sprintf("%.2f", o.Calls[i])
			}
			ratio := "-"
			if s := r.ratio(o, r.Contenders[i], Nutcracker, cpu.of); s.Median > 0 {
				ratio = fmt.Sprintf("%.3f", s.Median)
			}
			fmt.Fprintf(w, "%s\t%s\t%s%s\t%.1f\t%s\t\n", o.Load.Name, r.Contenders[i], m.Row(), calls, float64(o.Resident[i])/(1<<20), ratio)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range r.Outcomes {
		if len(o.Failed) > 0 {
			fmt.Fprintf(out, "%s: %d rounds failed, the first: %s\n", o.Load.Name, len(o.Failed), o.Failed[0])
		}
	}
	for _, why := range r.Failed {
		fmt.Fprintln(out, why)
	}
	fmt.Fprintf(out, "\nmedians over %d rounds of %.1f s, layout %s; ratios are medians of the rounds' ratios\n\n", r.Rounds, r.Seconds, r.Layout)
	return r.writeGoals(out)
}

// charts are the drawings of a report, by file.
var charts = []struct {
	file, title, unit string
	of                func(paired.Sample) float64
	log               bool
}{
	{"cpu.svg", "Processor time of the proxy", "us per request", cpu.of, true},
	{"rate.svg", "Throughput on one processor, which all share", "requests per second", func(s paired.Sample) float64 { return s.Rate }, true},
	{"p50.svg", "Median latency", "us", p50.of, true},
	{"p99.svg", "99th percentile of latency", "us", p99.of, true},
}

// Draw writes the report's table and charts into a folder.
func (r *Report) Draw(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot draw: %w", err)
	}
	for _, c := range charts {
		chart := plot.Chart{Title: c.title, Y: c.unit, Log: c.log, Groups: []string{}}
		for _, name := range r.Contenders {
			chart.Series = append(chart.Series, plot.Series{Name: name})
		}
		for _, o := range r.Outcomes {
			chart.Groups = append(chart.Groups, o.Load.Name)
			for i, m := range o.Medians {
				chart.Series[i].Y = append(chart.Series[i].Y, c.of(m))
			}
		}
		if err := write(filepath.Join(dir, c.file), func(w io.Writer) error { return plot.Write(w, []plot.Chart{chart}) }); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, "peers.txt"), r.WriteText)
}

func write(path string, what func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", filepath.Base(path), err)
	}
	return errors.Join(what(f), f.Close())
}
