//go:build linux

package scenario

import (
	"fmt"
	"math"
	"slices"
)

// trend is a quantity over time, and whether it grows.
//
// Memory goes up and down with each collection, and connections come and go, so the first and the last sample say
// little. The slope is the median of those between all pairs of samples (Theil and Sen), which a few outliers do
// not move. What it adds up to over the time watched is growth if it is more than the samples are off the line
// anyway: three times their median distance from it, scaled to a standard deviation. Were they independent, chance
// would reach that once in 10^20 with 100 samples; they are not, as a heap that has grown stays so
// for a while, and three leaves room for that. A leak of any constant rate outgrows it, given time.
type trend struct {
	seconds, values []float64
	// grain is growth that means nothing however even the samples are.
	grain float64
}

func (t *trend) add(seconds, value float64) {
	t.seconds, t.values = append(t.seconds, seconds), append(t.values, value)
}

// slope is by how much it grows in a second. It is 0 with less than two samples.
func (t *trend) slope() float64 {
	var all []float64
	for i := range t.values {
		for j := range i {
			all = append(all, (t.values[i]-t.values[j])/(t.seconds[i]-t.seconds[j]))
		}
	}
	return middle(all)
}

// growth is by how much it has grown while it was watched.
func (t *trend) growth() float64 {
	if len(t.seconds) < 2 {
		return 0
	}
	return t.slope() * (t.seconds[len(t.seconds)-1] - t.seconds[0])
}

// allowed is the most growth that need not be any.
func (t *trend) allowed() float64 {
	slope, off := t.slope(), make([]float64, len(t.values))
	for i := range off {
		off[i] = t.values[i] - slope*t.seconds[i]
	}
	level := middle(slices.Clone(off))
	for i := range off {
		off[i] = math.Abs(off[i] - level)
	}
	const toSigma = 1.4826 // of a normal distribution
	return max(t.grain, 3*toSigma*middle(off))
}

func (t *trend) grows() bool { return t.growth() > t.allowed() }

func (t *trend) String() string {
	if len(t.values) == 0 {
		return "never looked at"
	}
	return fmt.Sprintf("%.1f at first, %.1f at last, at most %.1f; by slope %+.2f, allowed %.2f", t.values[0], t.values[len(t.values)-1],
		slices.Max(t.values), t.growth(), t.allowed())
}

// middle is the median, and sorts. It is 0 of nothing.
func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return (of[len(of)/2] + of[(len(of)-1)/2]) / 2
}
