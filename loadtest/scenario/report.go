//go:build linux

package scenario

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Report is what a scenario found.
type Report struct {
	Name   string
	Rows   []Row   // what was seen
	Checks []Check // what of it has a goal
}

// Row is one line of the table.
type Row struct{ What, Figure string }

// Check compares a figure with its goal.
type Check struct {
	What, Figure, Goal string
	Pass               bool
}

// Pass reports whether all goals were met, and that there were any.
func (r *Report) Pass() bool {
	for _, c := range r.Checks {
		if !c.Pass {
			return false
		}
	}
	return len(r.Checks) > 0
}

// WriteText writes the table, a line for each goal, and one for all.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "      %s\t%s\n", row.What, row.Figure)
	}
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%s  %s\t%s\tgoal %s\n", verdict(c.Pass), c.What, c.Figure, c.Goal)
	}
	fmt.Fprintf(w, "%s  %s\n", verdict(r.Pass()), r.Name)
	return w.Flush()
}

func verdict(pass bool) string {
	if pass {
		return "PASS"
	}
	return "FAIL"
}

// row adds what was seen.
func (r *Report) row(what, format string, args ...any) {
	r.Rows = append(r.Rows, Row{what, fmt.Sprintf(format, args...)})
}

// atMost checks a count.
func (r *Report) atMost(what string, figure, goal int) {
	r.Checks = append(r.Checks, Check{what, fmt.Sprint(figure), fmt.Sprintf("<= %d", goal), figure <= goal})
}

// within checks a time.
func (r *Report) within(what string, figure, goal time.Duration) {
	r.Checks = append(r.Checks, Check{what, figure.Round(time.Millisecond).String(), fmt.Sprintf("<= %v", goal), figure <= goal})
}

// ratioAtLeast and ratioAtMost check a ratio.
func (r *Report) ratioAtLeast(what string, figure, goal float64) {
	r.Checks = append(r.Checks, Check{what, fmt.Sprintf("%.3f", figure), fmt.Sprintf(">= %v", goal), figure >= goal})
}

func (r *Report) ratioAtMost(what string, figure, goal float64) {
	r.Checks = append(r.Checks, Check{what, fmt.Sprintf("%.3f", figure), fmt.Sprintf("<= %v", goal), figure <= goal})
}

// yes checks what either is so or not.
func (r *Report) yes(what string, is bool) {
	figure := "no"
	if is {
		figure = "yes"
	}
	r.Checks = append(r.Checks, Check{what, figure, "yes", is})
}
