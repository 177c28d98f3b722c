package plot

import (
	"fmt"
	"math"
	"strings"
)

// axis maps values to pixels.
type axis struct {
	low, high float64 // values at the ends
	from, to  float64 // pixels at the ends
	log       bool
}

// newAxis returns an axis that begins at 0, or with a logarithm at a power of ten, and ends above high.
func newAxis(low, high, from, to float64, log bool) axis {
	if !(high > 0) {
		high = 1
	}
	a := axis{0, high * 1.05, from, to, log}
	if log {
		a.low = math.Pow(10, math.Floor(math.Log10(min(low, high))))
		if a.low >= a.high {
			a.high = 10 * a.low
		}
	}
	return a
}

func (a axis) place(v float64) float64 {
	part := (v - a.low) / (a.high - a.low)
	if a.log {
		part = math.Log(max(v, a.low)/a.low) / math.Log(a.high/a.low)
	}
	return a.from + float64(part*(a.to-a.from))
}

// ticks returns round values within the axis.
func (a axis) ticks() (all []float64) {
	if a.log {
		for v := a.low; v <= a.high; v *= 10 {
			all = append(all, v)
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high)))
	for _, part := range []float64{1, 2, 5} {
		if a.high*part/step < 4 {
			continue
		}
		step /= part
		break
	}
	for i := 0; float64(i)*step <= a.high; i++ {
		all = append(all, float64(i)*step)
	}
	return all
}

func (a axis) drawY(b *strings.Builder) {
	for _, v := range a.ticks() {
		y := a.place(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", left, y, width-right, y)
		text(b, left-6, y+4, "end", fmt.Sprintf("%.4g", v))
	}
}

func (a axis) drawX(b *strings.Builder) {
	for _, v := range a.ticks() {
		x := a.place(v)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", x, top, x, height-bottom)
		text(b, x, height-bottom+15, "middle", fmt.Sprintf("%.4g", v))
	}
}
