package top

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// The same figures look the same on the page; admin/assets/dom.js writes them there.

// rate writes how often a second.
func rate(n float64) string {
	if n > 0 && n < 9.95 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return number(n)
}

// number writes a whole number, with commas.
func number(n float64) string {
	s := strconv.FormatFloat(math.Abs(math.Round(n)), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// share writes a part of 1 in per cent.
func share(x float64) string {
	switch p := 100 * x; {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case p < 99.95:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// took writes a latency in seconds, nil for none.
func took(s *float64) string {
	switch {
	case s == nil:
		return "-"
	case *s < 0.9995e-3:
		return fmt.Sprintf("%.0f us", *s*1e6)
	case *s < 0.01:
		return fmt.Sprintf("%.2f ms", *s*1e3)
	case *s < 0.1:
		return fmt.Sprintf("%.1f ms", *s*1e3)
	case *s < 1:
		return fmt.Sprintf("%.0f ms", *s*1e3)
	}
	return fmt.Sprintf("%.2f s", *s)
}

// span writes a longer time.
func span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 90:
		return fmt.Sprintf("%.0f s", s)
	case s < 5400:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 172800:
		return fmt.Sprintf("%.0f h", s/3600)
	default:
		return fmt.Sprintf("%.0f days", s/86400)
	}
}
