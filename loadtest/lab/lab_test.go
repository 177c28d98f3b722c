package lab

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	everything = flag.Bool("all", false, "also run the experiments that take long, several minutes with the race detector")
	update     = flag.Bool("update", false, "write what was found to testdata; say in the commit why it changed")
)

// long are experiments of some ten million events.
var long = []string{"spill", "spill-floor"}

// Nothing differs from the sources, and what is found is what was found before, on whatever machine,
// to the byte.
func TestExperiments(t *testing.T) {
	dir := t.TempDir()
	for _, e := range Experiments() {
		if slices.Contains(long, e.Name) && !*everything {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			var found bytes.Buffer
			differ, err := e.Run(&found, dir)
			if err != nil {
				t.Fatal(err)
			}
			if differ != 0 {
				t.Errorf("%d figures differ:\n%s", differ, found.String())
			}
			wellFormed(t, filepath.Join(dir, e.Name+".svg"))
			compareGolden(t, e.Name, found.String())
		})
	}
}

func compareGolden(t *testing.T, name, found string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(found), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(found, "\n")); diff != "" {
		t.Errorf("%s (-before +now):\n%s", name, diff)
	}
}

// wellFormed fails unless a file is XML with something drawn.
func wellFormed(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	drawn := 0
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if s, ok := token.(xml.StartElement); ok && (s.Name.Local == "polyline" || s.Name.Local == "rect") {
			drawn++
		}
	}
	if drawn < 3 {
		t.Errorf("%s has only %d shapes", path, drawn)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{"all": true}
	for _, e := range Experiments() {
		if seen[e.Name] || e.About == "" {
			t.Errorf("experiment %q is there twice, or says nothing", e.Name)
		}
		seen[e.Name] = true
	}
}

// A figure that differs is counted and marked.
func TestReportSaysWhatDiffers(t *testing.T) {
	r := &report{}
	r.compare()
	r.exact("same", "1", "1")
	r.exact("other", "1", "2")
	r.near("near", "%.1f", 1, 1.05, 0.1)
	r.near("far", "%.1f", 1, 1.2, 0.1)
	r.shape("shape", "up", "up", true)
	r.claim("held", true)
	r.claim("broken", false)
	var b bytes.Buffer
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	if r.differ != 3 || strings.Count(b.String(), "DIFFERS") != 3 {
		t.Errorf("%d differ, want 3:\n%s", r.differ, b.String())
	}
}
