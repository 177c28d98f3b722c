package lab

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"cacherouter/loadtest/lab/plot"
)

// report collects what an experiment found.
type report struct {
	tables   []*table
	charts   []plot.Chart
	compared []Comparison
	differ   int
}

// Comparison is a figure of ours beside a source's.
type Comparison struct {
	What, Ours, Source string
	// Verdict is "exact", the tolerance that both are within, "as said" for what was measured or said in
	// words, or "DIFFERS".
	Verdict string
}

// table is rows of cells; the first and the last column are set left, the others right.
type table struct {
	rows  [][]string
	notes []string
}

// begin begins a table.
func (r *report) begin(columns ...string) {
	r.tables = append(r.tables, &table{rows: [][]string{columns}})
}

// compare begins a table of our figures beside a source's.
func (r *report) compare() { r.begin("", "ours", "source", "") }

// row adds a row to the last table.
func (r *report) row(cells ...string) {
	t := r.tables[len(r.tables)-1]
	t.rows = append(t.rows, cells)
}

// note adds a line below the last table.
func (r *report) note(format string, args ...any) {
	t := r.tables[len(r.tables)-1]
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// exact compares what the source computed.
func (r *report) exact(what, ours, source string) {
	r.verdict(what, ours, source, "exact", ours == source)
}

// near compares what the source simulated, or gave as the limit for many requests.
func (r *report) near(what, format string, ours, source, tolerance float64) {
	within := fmt.Sprintf("within "+format, tolerance)
	r.verdict(what, fmt.Sprintf(format, ours), fmt.Sprintf(format, source), within, math.Abs(ours-source) <= tolerance)
}

// shape compares what the source measured on some machine, or said in words.
func (r *report) shape(what, ours, source string, ok bool) {
	r.verdict(what, ours, source, "as said", ok)
}

func (r *report) verdict(what, ours, source, good string, ok bool) {
	if !ok {
		r.differ++
		good = "DIFFERS"
	}
	r.compared = append(r.compared, Comparison{what, ours, source, good})
	r.row(what, ours, source, good)
}

// claim adds a line below the last table that says whether something held.
func (r *report) claim(what string, ok bool) {
	if !ok {
		r.differ++
		what += ": DIFFERS"
	}
	r.note("- %s", what)
}

func (r *report) bars(title, y string, log bool, groups []string, series ...plot.Series) {
	r.charts = append(r.charts, plot.Chart{Title: title, Y: y, Log: log, Groups: groups, Series: series})
}

func (r *report) lines(title, x, y string, series ...plot.Series) {
	r.charts = append(r.charts, plot.Chart{Title: title, X: x, Y: y, Series: series})
}

func (r *report) write(out io.Writer) error {
	var b strings.Builder
	for _, t := range r.tables {
		t.write(&b)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t *table) write(b *strings.Builder) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(widths)-1 {
				line.WriteString("  " + cell + space)
			} else {
				line.WriteString("  " + space + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	for _, note := range t.notes {
		b.WriteString("  " + note + "\n")
	}
	b.WriteString("\n")
}

// percent formats a share.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
