// Package plot draws charts as SVG: lines over numbers, and bars in groups. The same chart gives the same
// bytes on any machine.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Chart is one drawing. With Groups it has bars, one of each series in each group; without, lines.
type Chart struct {
	Title  string
	X, Y   string // what the axes show
	Groups []string
	Series []Series
	Log    bool // the y axis is logarithmic
}

// Series is one line or one colour of bars. X is unused for bars.
type Series struct {
	Name string
	X, Y []float64
}

// Dimensions in pixels.
const (
	width, height            = 720, 360
	left, right, top, bottom = 70, 160, 40, 50
)

var colours = []string{"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#9c755f"}

// Write draws charts below each other.
func Write(w io.Writer, charts []Chart) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height*len(charts))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i := range charts {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*height)
		charts[i].draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Chart) draw(b *strings.Builder) {
	text(b, width/2, 22, "middle", c.Title)
	text(b, left+(width-left-right)/2, height-10, "middle", c.X)
	fmt.Fprintf(b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", height/2, html.EscapeString(c.Y))
	y := c.yAxis()
	y.drawY(b)
	if c.Groups != nil {
		c.drawBars(b, y)
	} else {
		c.drawLines(b, y)
	}
	for i, s := range c.Series {
		at := top + 16*i
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/>`+"\n", width-right+12, at, colour(i))
		text(b, width-right+27, float64(at+9), "start", s.Name)
	}
}

func (c *Chart) drawBars(b *strings.Builder, y axis) {
	group := float64(width-left-right) / float64(len(c.Groups))
	bar := 0.8 * group / float64(len(c.Series))
	for g, name := range c.Groups {
		x := left + float64(group*(float64(g)+0.1))
		text(b, x+float64(0.4*group), height-bottom+15, "middle", name)
		for i, s := range c.Series {
			at := y.place(s.Y[g])
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x+float64(bar*float64(i)), at, bar, height-bottom-at, colour(i))
		}
	}
}

func (c *Chart) drawLines(b *strings.Builder, y axis) {
	x := c.xAxis()
	x.drawX(b)
	for i, s := range c.Series {
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour(i))
		for j := range s.X {
			fmt.Fprintf(b, "%.1f,%.1f ", x.place(s.X[j]), y.place(s.Y[j]))
		}
		b.WriteString(`"/>` + "\n")
	}
}

func (c *Chart) yAxis() axis {
	low, high := math.Inf(1), 0.0
	for _, s := range c.Series {
		for _, v := range s.Y {
			high = max(high, v)
			if v > 0 {
				low = min(low, v)
			}
		}
	}
	return newAxis(low, high, height-bottom, top, c.Log)
}

func (c *Chart) xAxis() axis {
	low, high := math.Inf(1), 0.0
	for _, s := range c.Series {
		for _, v := range s.X {
			low, high = min(low, v), max(high, v)
		}
	}
	return newAxis(low, high, left, width-right, low > 0 && high > 50*low)
}

func colour(i int) string { return colours[i%len(colours)] }

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
}
