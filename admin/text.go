package admin

import (
	"math"
	"strconv"
	"strings"
)

// appendText appends the figures in the text format of Prometheus, version 0.0.4.
func (f *figures) appendText(b []byte) []byte {
	for _, to := range f.families() {
		b = append(append(append(b, "# HELP "...), to.name...), ' ')
		b = append(helpEscapes.appendTo(b, to.help), '\n')
		b = append(append(append(b, "# TYPE "...), to.name...), ' ')
		b = append(append(b, to.kind...), '\n')
		for i := range f.of[to] {
			b = appendFigure(b, to, &f.of[to][i])
		}
	}
	return b
}

// escapes replaces what must not stand in a text as it is.
type escapes struct {
	set      string
	replacer *strings.Replacer
}

var (
	helpEscapes  = escapes{"\\\n", strings.NewReplacer("\\", `\\`, "\n", `\n`)}
	labelEscapes = escapes{"\\\n\"", strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)}
)

// appendTo appends s with what must be escaped.
func (e escapes) appendTo(b []byte, s string) []byte {
	if strings.ContainsAny(s, e.set) {
		s = e.replacer.Replace(s)
	}
	return append(b, s...)
}

func appendFigure(b []byte, to *family, x *figure) []byte {
	h := x.histogram
	if h == nil {
		return appendSample(b, to, "", x, "", x.value)
	}
	for i, n := range h.below {
		b = appendSample(b, to, "_bucket", x, h.bounds.text[i], float64(n))
	}
	b = appendSample(b, to, "_bucket", x, "+Inf", float64(h.count))
	b = appendSample(b, to, "_sum", x, "", h.sum)
	return appendSample(b, to, "_count", x, "", float64(h.count))
}

// appendSample appends one line. le is the label of a bucket.
func appendSample(b []byte, to *family, suffix string, x *figure, le string, value float64) []byte {
	b = append(append(b, to.name...), suffix...)
	open := byte('{')
	for i, name := range to.labels {
		b = append(append(append(b, open), name...), '=', '"')
		b = append(labelEscapes.appendTo(b, x.labels[to.order[i]]), '"')
		open = ','
	}
	if x.pool != "" {
		b = append(append(b, open), "pool=\""...)
		b = append(labelEscapes.appendTo(b, x.pool), '"')
		open = ','
	}
	if le != "" {
		b = append(append(append(b, open), "le=\""...), le...)
		b, open = append(b, '"'), ','
	}
	if open == ',' {
		b = append(b, '}')
	}
	return append(appendValue(append(b, ' '), value), '\n')
}

// appendValue appends a figure; whole ones are much the most.
func appendValue(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
