package plot

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	f := func(low, high float64, log bool, want ...float64) {
		t.Helper()
		if got := newAxis(low, high, 0, 100, log).ticks(); !slices.Equal(got, want) {
			t.Errorf("ticks to %v: %v, want %v", high, got, want)
		}
	}
	f(0, 4, false, 0, 1, 2, 3, 4)
	f(0, 9, false, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	f(0, 20, false, 0, 5, 10, 15, 20)
	f(0, 0, false, 0, 0.2, 0.4, 0.6000000000000001, 0.8, 1)
	f(3, 2000, true, 1, 10, 100, 1000)
}

func TestPlaces(t *testing.T) {
	f := func(v float64, log bool, want float64) {
		t.Helper()
		a := axis{low: 1, high: 101, from: 200, to: 0, log: log}
		if log {
			a.high = 100
		}
		if got := a.place(v); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("place(%v) = %v, want %v", v, got, want)
		}
	}
	f(1, false, 200)
	f(51, false, 100)
	f(101, false, 0)
	f(10, true, 100)
	f(0, true, 200) // nothing has no logarithm; it lies on the axis
}

func TestChartIsXML(t *testing.T) {
	var b strings.Builder
	err := Write(&b, []Chart{
		{Title: "a < b & c", Groups: []string{"x", "y"}, Series: []Series{{Name: "one", Y: []float64{1, 2}}, {Name: "two", Y: []float64{0, 3}}}},
		{Title: "lines", Log: true, Series: []Series{{Name: "l", X: []float64{1, 2, 300}, Y: []float64{5, 0, 500}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	}
	if bars, lines := strings.Count(b.String(), "<rect"), strings.Count(b.String(), "<polyline"); bars != 1+4+2+1 || lines != 1 {
		t.Errorf("%d rectangles and %d lines", bars, lines)
	}
}
