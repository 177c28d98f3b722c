package admin

import (
	"slices"
	"strings"
)

// kind says what sort of figure a family has.
type kind string

const (
	counts   kind = "counter"
	gauges   kind = "gauge"
	observes kind = "histogram"
)

// family is what the metrics of one name have in common. Labels are sorted, and order has
// the place of each among the values that are given with a figure.
type family struct {
	name, help string
	kind       kind
	labels     []string
	order      []int
}

func newFamily(k kind, name, help string, labels ...string) *family {
	f := &family{name: "cacherouter_" + name, help: help, kind: k, labels: slices.Sorted(slices.Values(labels))}
	for _, l := range f.labels {
		f.order = append(f.order, slices.Index(labels, l))
	}
	return f
}

// metric is a family, and how its figure is read off what it tells of.
type metric[S any] struct {
	*family
	read func(*S) float64
}

// counter returns a metric that only grows.
func counter[S any](name, help string, read func(*S) uint64) metric[S] {
	return metric[S]{&family{name: name, help: help, kind: counts}, func(s *S) float64 { return float64(read(s)) }}
}

// seconds returns a metric that only grows, and is read off in seconds.
func seconds[S any](name, help string, read func(*S) float64) metric[S] {
	return metric[S]{&family{name: name, help: help, kind: counts}, read}
}

// gauge returns a metric that goes up and down.
func gauge[S any](name, help string, read func(*S) float64) metric[S] {
	return metric[S]{&family{name: name, help: help, kind: gauges}, read}
}

// group is the metrics that are read off one thing.
type group[S any] []metric[S]

// newGroup makes a group of metrics that have a beginning of their names and labels in
// common.
func newGroup[S any](prefix string, labels []string, all ...metric[S]) group[S] {
	for i, m := range all {
		all[i].family = newFamily(m.kind, prefix+m.name, m.help, labels...)
	}
	return all
}

// add adds what the group reads off s.
func (g group[S]) add(to *figures, s *S, labels ...string) {
	for _, m := range g {
		to.add(m.family, m.read(s), labels...)
	}
}

func (g group[S]) families() (all []*family) {
	for _, m := range g {
		all = append(all, m.family)
	}
	return all
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// figures is what one scrape has found, by family. It stands in for the collectors of the
// metrics library, which take half a second for a thousand servers.
type figures struct {
	of map[*family][]figure
	// pool is the one that is added now, if there are several: a label of its figures.
	pool string
}

// figure is one figure of a family, or one histogram. Labels are valid UTF-8.
type figure struct {
	labels    []string
	pool      string // a label more, unless it is empty
	value     float64
	histogram *histogram // nil of what is no histogram
}

func newFigures() *figures { return &figures{of: make(map[*family][]figure)} }

// add adds one figure. The labels are those of the family, as it was made with; they are not
// copied.
func (f *figures) add(to *family, value float64, labels ...string) {
	f.put(to, figure{labels: valid(labels), value: value})
}

// observe adds one histogram.
func (f *figures) observe(to *family, h *histogram, labels ...string) {
	f.put(to, figure{labels: valid(labels), histogram: h})
}

func (f *figures) put(to *family, one figure) {
	if len(one.labels) != len(to.labels) {
		panic("bug: metric " + to.name + " with other labels than it has")
	}
	one.pool = f.pool
	f.of[to] = append(f.of[to], one)
}

// valid makes labels valid UTF-8.
func valid(labels []string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return labels
}

// families returns those that have figures, by name.
func (f *figures) families() (all []*family) {
	for to := range f.of {
		all = append(all, to)
	}
	slices.SortFunc(all, func(a, b *family) int { return strings.Compare(a.name, b.name) })
	return all
}
