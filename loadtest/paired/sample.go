//go:build linux

package paired

import (
	"fmt"
	"slices"
	"time"

	"cacherouter/loadtest/load"
	"cacherouter/loadtest/process"
)

// Sample is what one run of one contender measured; a median of samples has the same form.
type Sample struct {
	CPU       float64 `json:"cpu_us"`           // processor time of the contender per request, microseconds
	Load      float64 `json:"load"`             // the same per second, in processors
	Switches  float64 `json:"context_switches"` // per request
	Rate      float64 `json:"rate"`             // requests per second
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p99_9_us"`
	Generator float64 `json:"generator_cpu_us"` // processor time of the load generator per request, microseconds
}

// newSample divides what the contender and the generator have used by the requests of r.
func newSample(contender, generator process.Cost, r load.Result) Sample {
	n := float64(max(r.Answered(), 1))
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return Sample{
		CPU:       us(contender.CPU) / n,
		Load:      contender.CPU.Seconds() / r.Seconds,
		Switches:  float64(contender.Switches) / n,
		Rate:      r.Rate,
		P50:       r.Latency.P50,
		P99:       r.Latency.P99,
		P999:      r.Latency.P999,
		Generator: us(generator.CPU) / n,
	}
}

// Header titles the fields that Row writes, each ended by a tab.
const Header = "CPU us/req\tbusy\treq/s\tp50 us\tp99 us\tp99.9 us\tswitches/req\tgenerator us/req\t"

// Row is the sample under Header.
func (s Sample) Row() string {
	return fmt.Sprintf("%.2f\t%.0f%%\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t",
		s.CPU, 100*s.Load, s.Rate, s.P50, s.P99, s.P999, s.Switches, s.Generator)
}

// Median is the median of each field by itself; of no samples it is zero.
func Median(samples []Sample) Sample {
	of := func(field func(Sample) float64) float64 {
		var all []float64
		for _, x := range samples {
			all = append(all, field(x))
		}
		return quantile(all, 0.5)
	}
	return Sample{
		CPU:       of(func(x Sample) float64 { return x.CPU }),
		Load:      of(func(x Sample) float64 { return x.Load }),
		Switches:  of(func(x Sample) float64 { return x.Switches }),
		Rate:      of(func(x Sample) float64 { return x.Rate }),
		P50:       of(func(x Sample) float64 { return x.P50 }),
		P99:       of(func(x Sample) float64 { return x.P99 }),
		P999:      of(func(x Sample) float64 { return x.P999 }),
		Generator: of(func(x Sample) float64 { return x.Generator }),
	}
}

// Spread is the middle of some figures.
type Spread struct {
	Median, Low, High float64 // Low and High are the quartiles
}

// Compare is the spread of what of gives for each round. Samples are by contender and round, and
// of gets those of one round by contender. Rounds that not all have are left out; of no round the
// spread is zero.
func Compare(samples [][]Sample, of func(round []Sample) float64) Spread {
	var all []float64
	for n := 0; ; n++ {
		var round []Sample
		for _, s := range samples {
			if n < len(s) {
				round = append(round, s[n])
			}
		}
		if len(round) < len(samples) || len(round) == 0 {
			return Spread{quantile(all, 0.5), quantile(all, 0.25), quantile(all, 0.75)}
		}
		all = append(all, of(round))
	}
}

// quantile interpolates between the two nearest of v, as spreadsheets do; of no values it is 0.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	at := q * float64(len(v)-1)
	low := int(at)
	high := min(low+1, len(v)-1)
	return v[low] + (at-float64(low))*(v[high]-v[low])
}
