//go:build linux

package protocols

import (
	"fmt"
	"io"
	"text/tabwriter"

	"cacherouter/loadtest/paired"
	"cacherouter/loadtest/process"
)

// Report is a whole comparison.
type Report struct {
	Rounds  int            `json:"rounds"`
	Seconds float64        `json:"seconds"` // of one run
	Layout  process.Layout `json:"layout"`
	Tables  []Table        `json:"tables"`
}

// Table is what was measured with one load.
type Table struct {
	Name        string    `json:"name"`
	Connections int       `json:"connections"`
	Pipeline    int       `json:"pipeline"`
	Rows        []Row     `json:"rows"`
	Verdicts    []Verdict `json:"verdicts"`
	Failed      []string  `json:"failed,omitempty"` // why rounds were left out
}

// Row is one contender.
type Row struct {
	Contender string          `json:"contender"`
	Median    paired.Sample   `json:"median"`
	Samples   []paired.Sample `json:"samples"` // by round
}

// Verdict is how two contenders compare within the rounds.
type Verdict struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Low    float64 `json:"quartile_1"`
	High   float64 `json:"quartile_3"`
	Unit   string  `json:"unit,omitempty"`   // empty for a ratio
	Target float64 `json:"target,omitempty"` // not to be exceeded; 0 is for information
}

// Met reports whether the target was reached. Nothing measured is not.
func (v Verdict) Met() bool { return v.Median > 0 && v.Median <= v.Target }

func conclude(x comparison, s paired.Samples) Table {
	t := Table{Name: x.name, Connections: x.contenders[0].Plan.Connections, Pipeline: x.pipeline, Failed: s.Failed}
	for i, c := range x.contenders {
		t.Rows = append(t.Rows, Row{c.Name, paired.Median(s.Of[i]), s.Of[i]})
	}
	for _, q := range x.questions {
		m := paired.Compare(s.Of, q.of)
		t.Verdicts = append(t.Verdicts, Verdict{q.name, m.Median, m.Low, m.High, q.unit, q.target})
	}
	return t
}

// WriteText writes r as tables.
func (r *Report) WriteText(out io.Writer) error {
	for _, t := range r.Tables {
		fmt.Fprintf(out, "%s, %d connections, pipeline %d: medians of %d rounds of %.1f s, layout %s\n",
			t.Name, t.Connections, t.Pipeline, len(t.Rows[0].Samples), r.Seconds, r.Layout)
		if err := t.write(out); err != nil {
			return err
		}
	}
	return nil
}

func (t Table) write(out io.Writer) error {
	if len(t.Rows[0].Samples) > 0 {
		if err := t.writeRows(out); err != nil {
			return err
		}
	}
	if len(t.Failed) > 0 {
		fmt.Fprintf(out, "%d rounds failed, the first: %s\n", len(t.Failed), t.Failed[0])
	}
	_, err := fmt.Fprintln(out)
	return err
}

func (t Table) writeRows(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "contender\t"+paired.Header)
	for _, row := range t.Rows {
		fmt.Fprintf(w, "%s\t%s\n", row.Contender, row.Median.Row())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, v := range t.Verdicts {
		fmt.Fprintf(w, "%s\t%.3f%s\t(half in %.3f to %.3f)\t%s\n", v.Name, v.Median, v.Unit, v.Low, v.High, v.verdict())
	}
	return w.Flush()
}

func (v Verdict) verdict() string {
	switch {
	case v.Target == 0:
		return ""
	case v.Met():
		return fmt.Sprintf("target <= %.2f, met", v.Target)
	}
	return fmt.Sprintf("target <= %.2f, MISSED", v.Target)
}
