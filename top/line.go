package top

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Look is what a terminal can show. The zero value is plain ASCII.
type Look struct {
	Color   bool
	Unicode bool // bars of blocks, and a true ellipsis
}

// style is the parameter of an escape sequence that colours text.
type style string

const (
	normal style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// line is a line being written that never gets wider than it may. It is the only way to the
// screen: what is added to it can be anything, and comes out as printable ASCII.
type line struct {
	look Look
	left int // columns
	text strings.Builder
}

// add writes text, or as much of it as there is room for.
func (l *line) add(s style, text string) {
	text = plain(text)
	l.cell(s, text, min(len(text), l.left), false)
}

// cell writes text into so many columns, at their right end if asked to. What does not fit is
// cut, and seen to be.
func (l *line) cell(s style, text string, width int, right bool) {
	width = min(width, l.left)
	if width <= 0 {
		return
	}
	text = plain(text)
	blank := max(0, width-len(text))
	if len(text) > width {
		text = text[:width-1] + l.look.pick("…", "~")
	}
	if right {
		l.skip(blank)
		blank = 0
	}
	l.drawn(s, text)
	l.skip(blank)
}

// drawn writes what this package makes, a column a rune, and fits.
func (l *line) drawn(s style, text string) {
	l.left -= utf8.RuneCountInString(text)
	if l.look.Color && s != normal && text != "" {
		text = "\x1b[" + string(s) + "m" + text + "\x1b[0m"
	}
	l.text.WriteString(text)
}

// skip leaves columns blank.
func (l *line) skip(n int) { l.drawn(normal, strings.Repeat(" ", max(0, min(n, l.left)))) }

// bar draws a part of a whole; what is more than the whole fills it.
func (l *line) bar(s style, part float64, width int) {
	width = min(width, l.left)
	full := min(width, int(part*float64(width)+0.5))
	if part > 0 && full == 0 {
		full = min(1, width) // something is not nothing
	}
	l.drawn(s, strings.Repeat(l.look.pick("█", "#"), full))
	l.drawn(dim, strings.Repeat(l.look.pick("░", "."), width-full))
}

func (l *line) String() string { return strings.TrimRight(l.text.String(), " ") }

// pick returns what the terminal can show.
func (l Look) pick(fine, ascii string) string {
	if l.Unicode {
		return fine
	}
	return ascii
}

// plain escapes what is not printable ASCII, as Go does. Keys are what clients send, and
// so is part of what the router says: none of it may steer the terminal. That letters of
// other scripts are escaped too makes each byte of the result one column.
func plain(text string) string {
	const tilde = '~' // the last printable one
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > tilde }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r >= ' ' && r <= tilde:
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i])+0x100, 16)[1:])
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// wrap breaks escaped text into at most so many lines; what does not fit is at the end of the
// last one, to be cut.
func wrap(text string, width, most int) (lines []string) {
	text = plain(text)
	for len(text) > width && len(lines) < most-1 {
		at := strings.LastIndexByte(text[:width+1], ' ')
		if at <= 0 {
			at = width
		}
		lines = append(lines, text[:at])
		text = strings.TrimPrefix(text[at:], " ")
	}
	return append(lines, text)
}
