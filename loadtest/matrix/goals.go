//go:build linux

package matrix

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"cacherouter/loadtest/paired"
)

// measure is a figure of a sample.
type measure struct {
	name string
	of   func(paired.Sample) float64
}

var (
	cpu = measure{"CPU", func(s paired.Sample) float64 { return s.CPU }}
	p50 = measure{"p50", func(s paired.Sample) float64 { return s.P50 }}
	p99 = measure{"p99", func(s paired.Sample) float64 { return s.P99 }}
)

// goal is a ratio that the project holds itself to.
type goal struct {
	load, ours, against string
	measure             measure
	most                float64
}

var goals = []goal{
	{"single", Epoll, Nutcracker, cpu, 0.72},
	{"single", Uring, Nutcracker, cpu, 0.62},
	{"pipelined", Epoll, Nutcracker, cpu, 0.42},
	{"multiget-100", Epoll, Nutcracker, cpu, 0.50},
	{"single", Epoll, MCProxy, cpu, 0.92},
	{"single", Uring, MCProxy, cpu, 0.82},
	{"pipelined", Epoll, MCProxy, cpu, 0.75},
	{"single", Uring, Memcached, cpu, 1.25},
	{"pipelined", Epoll, Memcached, cpu, 0.45},
	{"alone", Epoll, Nutcracker, p50, 0.90},
	{"steady", Epoll, Nutcracker, p99, 1.00},
	{"single", Epoll, EpollPlain, cpu, 1.10},
	{"pipelined", Epoll, EpollPlain, cpu, 1.10},
	{"multiget-100", Epoll, EpollPlain, cpu, 1.10},
}

// ratio returns the median of the rounds' ratios of two contenders, with the middle half of them. It is zero
// where one of them was not measured.
func (r *Report) ratio(o Outcome, ours, against string, of func(paired.Sample) float64) paired.Spread {
	a, b := slices.Index(r.Contenders, ours), slices.Index(r.Contenders, against)
	if a < 0 || b < 0 || max(a, b) >= len(o.Samples) {
		return paired.Spread{}
	}
	return paired.Compare([][]paired.Sample{o.Samples[a], o.Samples[b]}, func(round []paired.Sample) float64 {
		return of(round[0]) / of(round[1])
	})
}

func (r *Report) writeGoals(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, g := range goals {
		for _, o := range r.Outcomes {
			s := r.ratio(o, g.ours, g.against, g.measure.of)
			if o.Load.Name != g.load || s.Median == 0 {
				continue
			}
			verdict := "met"
			if s.Median > g.most {
				verdict = "MISSED"
			}
			fmt.Fprintf(w, "%s, %s\t%s / %s\t%.3f\t(half in %.3f-%.3f)\tgoal <= %.2f\t%s\n",
				g.load, g.measure.name, g.ours, g.against, s.Median, s.Low, s.High, g.most, verdict)
		}
	}
	return w.Flush()
}
