package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// String sums up the check in a few lines, violations included.
func (r *Report) String() string {
	var b strings.Builder
	rate := float64(r.Ops) / r.Took.Seconds()
	fmt.Fprintf(&b, "%d operations checked in %v (%.0f a second): %d steps in %d pieces, the longest of %d",
		r.Ops, r.Took.Round(time.Millisecond), rate, r.Steps, r.Pieces, r.Longest)
	if r.Stalest > 0 {
		fmt.Fprintf(&b, "; the stalest read was %v late", r.Stalest)
	}
	if r.Broken > len(r.Violations) {
		fmt.Fprintf(&b, "\n%d parts are broken, among them:", r.Broken)
	}
	for _, v := range r.Violations {
		b.WriteString("\n" + v.String())
	}
	return b.String()
}

// maxShown is how many operations of a violation String shows.
const maxShown = 20

// String shows the violation and its first operations.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s:", v.Key, v.Reason)
	for i := range v.Ops {
		if i == maxShown {
			fmt.Fprintf(&b, "\n  ... and %d more", len(v.Ops)-maxShown)
			break
		}
		b.WriteString("\n  " + v.Ops[i].String())
	}
	return b.String()
}

// Save writes the violation into a folder, which it makes: its operations to violation-N.txt, followed by those among
// which they were found, and drawn by Porcupine in violation-N.html.
func (v *Violation) Save(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make a folder for violations: %w", err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s: %s; times in microseconds\n", v.Key, v.Reason)
	for i := range v.Ops {
		fmt.Fprintln(&text, v.Ops[i].String())
	}
	fmt.Fprintf(&text, "\nAll that was judged together:\n")
	for _, s := range v.piece.steps {
		fmt.Fprintln(&text, s.op.String())
	}
	path := filepath.Join(dir, fmt.Sprintf("violation-%d", n))
	if err := os.WriteFile(path+".txt", text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write a violation: %w", err)
	}
	return v.piece.picture(v.steps, path+".html")
}

// Counts tells how many operations there are of each kind, by outcome, as a table.
func Counts(ops []Op) string {
	var table [kinds][outcomes]int
	for i := range ops {
		table[ops[i].Kind][ops[i].Outcome]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s%10s%10s%10s%10s\n", "", outcomeNames[Done], outcomeNames[Missed], outcomeNames[Refused], "unknown")
	for kind, row := range table {
		fmt.Fprintf(&b, "%-8s%10d%10d%10d%10d\n", kindNames[kind], row[Done], row[Missed], row[Refused], row[Unknown])
	}
	return b.String()
}
