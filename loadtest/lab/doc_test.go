package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docPath is the page that has the table.
const docPath = "../../docs/lab.md"

// The table stands between these lines; the rest of the page is written by hand.
const (
	docBegin = "<!-- made by: go test ./loadtest/lab -run Experiments -update -->\n"
	docEnd   = "<!-- end of what is made -->\n"
)

// document adds an experiment's rows. Experiments that compare nothing figure by figure are one row.
func document(b *strings.Builder, e *Experiment, compared []Comparison) {
	cell := strings.NewReplacer("|", "\\|")
	if len(compared) == 0 {
		fmt.Fprintf(b, "| %s | %s | %s | [figures](../loadtest/lab/testdata/%s.txt) | | |\n", e.Name, e.Facts, cell.Replace(e.About), e.Name)
	}
	name, facts := e.Name, e.Facts
	for _, c := range compared {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", name, facts, cell.Replace(c.What), cell.Replace(c.Ours), cell.Replace(c.Source), c.Verdict)
		name, facts = "", ""
	}
}

// compareDoc compares the table of the page with what was found.
func compareDoc(t *testing.T, rows string) {
	t.Helper()
	rows = "\n| experiment | fact | | ours | source | |\n|---|---|---|---|---|---|\n" + rows + "\n"
	b, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), docBegin)
	_, after, ok2 := strings.Cut(rest, docEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", docPath)
	}
	page := before + docBegin + rows + docEnd + after
	switch {
	case page == string(b):
	case *update:
		if err := os.WriteFile(docPath, []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what is found: go test ./loadtest/lab -run Experiments -update", docPath)
	}
}
