package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
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
var long = []string{"spill", "spill-floor", "propagation"}

// Nothing differs from the sources, and what is found is what was found before, on whatever machine,
// to the byte, charts included.
func TestExperiments(t *testing.T) {
	dir := t.TempDir()
	var docs strings.Builder
	var sums []string
	for _, e := range Experiments() {
		if slices.Contains(long, e.Name) && !*everything {
			document(&docs, &e, nil) // they compare nothing figure by figure
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			var found bytes.Buffer
			compared, differ, err := e.Run(&found, dir)
			if err != nil {
				t.Fatal(err)
			}
			if differ != 0 {
				t.Errorf("%d figures differ:\n%s", differ, found.String())
			}
			sums = append(sums, drawn(t, filepath.Join(dir, e.Name+".svg"))+" "+e.Name)
			compareGolden(t, e.Name, found.String())
			document(&docs, &e, compared)
		})
	}
	compareSums(t, sums)
	if len(sums) == len(Experiments()) || !*everything && len(sums) == len(Experiments())-len(long) {
		compareDoc(t, docs.String())
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

// drawn fails unless a file is XML with something drawn, and returns its digest.
func drawn(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
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
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// compareSums compares the digests of the charts with those of before. Those of experiments that take long are
// not all there.
func compareSums(t *testing.T, sums []string) {
	t.Helper()
	path := filepath.Join("testdata", "charts.sha256")
	b, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	before := strings.Fields(string(b))
	for _, line := range sums {
		sum, name, _ := strings.Cut(line, " ")
		i := slices.Index(before, name)
		switch {
		case i > 0 && before[i-1] == sum:
		case !*update:
			t.Errorf("the chart of %s is not what it was", name)
		case i > 0:
			before[i-1] = sum
		default:
			before = append(before, sum, name)
		}
	}
	if *update {
		var text strings.Builder
		for i := 0; i+1 < len(before); i += 2 {
			fmt.Fprintln(&text, before[i], before[i+1])
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
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
