package top

import (
	"fmt"
	"time"

	"cacherouter/admin"
)

// View is what is shown, and how.
type View struct {
	// Address is where the router is asked.
	Address string
	// Event is what it said last, at Heard; Changes are the newest first.
	Event   *admin.Event
	Changes []admin.Change
	Heard   time.Time
	// Err is why it says no more; nil while it does.
	Err error
	// Now is the time, in the zone in which times are shown.
	Now time.Time
	// Focus is the part that gets all the room.
	Focus Focus
	// Scroll is how many rows of that part are above those that are shown. Lines brings it
	// into range.
	Scroll int
	room   int // rows of that part that were drawn last
	// Live says that keys can be pressed.
	Live bool
	Look Look
}

// Focus says which part gets all the room; the zero value shares it out.
type Focus int

// numFocus counts all, and each of the parts.
const numFocus = 5

// focusNames are their names.
var focusNames = [numFocus]string{"all", "servers", "hot keys", "routers", "changes"}

// step returns the next focus, or with -1 the one before.
func (f Focus) step(by int) Focus { return (f + Focus(by) + numFocus) % numFocus }

// Lines draws at most height lines of at most width columns, or as many as it takes if height
// is 0. But for the sequences that colour, they are of printable characters.
func (v *View) Lines(width, height int) []string {
	p := &page{view: v, width: width}
	p.title()
	p.state()
	p.figures()
	p.blank()
	room := height - len(p.lines)
	switch {
	case height == 0:
		room = 1 << 30
	case v.Live:
		room--
	}
	p.parts(room)
	if height > 0 {
		p.foot(height)
		p.lines = p.lines[:min(height, len(p.lines))]
	}
	return p.lines
}

// page is a page being drawn.
type page struct {
	view  *View
	width int
	lines []string
	more  int // rows for which the part that has the focus has no room
}

// put adds a line that is written by a function.
func (p *page) put(write func(*line)) {
	l := &line{look: p.view.Look, left: p.width}
	write(l)
	p.lines = append(p.lines, l.String())
}

func (p *page) blank() { p.lines = append(p.lines, "") }

// late is the age from which what is shown is said to be old: it should be new each second.
const late = 2500 * time.Millisecond

func (p *page) title() {
	o := &p.view.Event.Overview
	p.put(func(l *line) {
		l.add(bold, "cacherouter "+o.Router)
		l.add(dim, " at "+p.view.Address+", up "+span(o.At.Sub(o.Started)))
		if age := p.view.Now.Sub(p.view.Heard); age >= late && p.view.Err == nil {
			l.add(yellow, ", silent for "+span(age))
		}
	})
}

// Limits of how much is said of the state.
const (
	maxSentence = 3 // lines
	maxProblems = 3 // beyond the first
)

// state says whether all is well. A router that is silent is not said to be well.
func (p *page) state() {
	v, o := p.view, &p.view.Event.Overview
	if v.Err != nil {
		p.say(red, v.Err.Error()+". Trying again; what follows is "+span(v.Now.Sub(v.Heard))+" old.")
		return
	}
	switch o.Level {
	case "well":
		p.say(green, o.Sentence)
	case "warning":
		p.say(yellow, "Warning: "+o.Sentence)
	default:
		p.say(red, "Trouble: "+o.Sentence)
	}
	for i, other := range o.Problems {
		switch {
		case i == 0: // that is the sentence
		case i > maxProblems:
			p.put(func(l *line) { l.add(yellow, fmt.Sprintf("And %d more.", len(o.Problems)-i)) })
			return
		default:
			p.put(func(l *line) { l.add(yellow, "Also: "+other.Text) })
		}
	}
}

func (p *page) say(s style, sentence string) {
	for _, text := range wrap(sentence, max(p.width, 1), maxSentence) {
		p.put(func(l *line) { l.add(s, text) })
	}
}

// figures are the router's, under their names.
func (p *page) figures() {
	o := &p.view.Event.Overview
	hits := "-"
	if o.HitRatio != nil {
		hits = share(*o.HitRatio)
	}
	failed := normal
	if o.Failed > 0 {
		failed = red
	}
	all := []struct {
		name, value string
		style       style
	}{
		{"requests/s", rate(o.Requests), bold}, {"hits", hits, bold}, {"p50", took(o.P50), bold}, {"p99", took(o.P99), bold},
		{"failed/s", rate(o.Failed), failed}, {"clients", number(float64(o.Clients)), normal},
		{"writes/s", rate(o.Writes), normal}, {"busy", share(o.Busy), normal},
	}
	const column = 10
	p.put(func(l *line) {
		for _, f := range all {
			l.cell(dim, f.name, column, true)
		}
	})
	p.put(func(l *line) {
		for _, f := range all {
			l.skip(1)
			l.cell(f.style, f.value, column-1, true)
		}
	})
	if h := &p.view.Event.Handover; h.Active {
		p.put(func(l *line) {
			l.add(dim, fmt.Sprintf("%s of the keys have moved: for %.0f s more they are looked for where they were, too.", share(h.Moved), h.Remaining))
		})
	}
}

// foot says at the bottom which keys there are.
func (p *page) foot(height int) {
	if !p.view.Live {
		return
	}
	p.lines = p.lines[:min(len(p.lines), max(0, height-1))]
	for len(p.lines) < height-1 {
		p.blank()
	}
	p.put(func(l *line) {
		l.add(dim, "q quits  Tab shows")
		for i, name := range focusNames {
			s := dim
			if l.skip(1); Focus(i) == p.view.Focus {
				s, name = bold, "["+name+"]"
			}
			l.add(s, name)
		}
		if p.more > 0 {
			l.add(dim, fmt.Sprintf("  rows %d to %d of %d: Up, Down", p.view.Scroll+1, p.view.Scroll+p.view.room, p.view.room+p.more))
		}
	})
}
