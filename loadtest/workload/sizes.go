package workload

import (
	"fmt"
	"math"
	"strconv"
)

// Sizes is how long keys or values are, in bytes, in one word:
//
//	100                              all as long
//	uniform:LOW:HIGH                 from LOW to HIGH, all lengths as often
//	exponential:MEAN                 exponential
//	gev:LOCATION:SCALE:SHAPE         generalized extreme value; the shape is positive for heavy tails
//	pareto:LOCATION:SCALE:SHAPE      generalized Pareto; the shape is positive for heavy tails
//	etc                              values of Facebook's pool ETC: a table for those under 15 bytes, and a
//	                                 generalized Pareto distribution
//
// What is drawn is rounded down.
type Sizes string

// wantedOf is how many numbers each kind has.
var wantedOf = map[string]int{"uniform": 2, "exponential": 1, "gev": 3, "pareto": 3, "etc": 0}

// Validate says what is wrong with the word.
func (s Sizes) Validate() error {
	_, err := s.Quantiles()
	return err
}

// Fixed returns the one length there is, and false if there are several.
func (s Sizes) Fixed() (size int, ok bool) {
	size, err := strconv.Atoi(string(s))
	return size, err == nil && size >= 0
}

// Quantiles returns the function that says for a share u, from 0 to below 1, which length that share of all is
// shorter than, or as short. Lengths can be negative or infinite if the distribution's are.
func (s Sizes) Quantiles() (func(u float64) float64, error) {
	if size, ok := s.Fixed(); ok {
		return func(float64) float64 { return float64(size) }, nil
	}
	wanted, known := wantedOf[name(string(s))]
	if !known {
		return nil, fmt.Errorf("%q is no length: want a number of bytes, uniform:LOW:HIGH, exponential:MEAN, gev:LOCATION:SCALE:SHAPE, pareto:LOCATION:SCALE:SHAPE or etc", string(s))
	}
	x, err := cut(string(s), wanted)
	if err != nil {
		return nil, fmt.Errorf("cannot tell lengths: %w", err)
	}
	switch name(string(s)) {
	case "uniform":
		if !(x[0] >= 0 && x[0] <= x[1]) {
			return nil, fmt.Errorf("cannot tell lengths: %q has no length from 0 on", string(s))
		}
		return func(u float64) float64 { return x[0] + u*(x[1]+1-x[0]) }, nil
	case "exponential":
		return func(u float64) float64 { return -x[0] * math.Log1p(-u) }, nil
	case "etc":
		return etcValue, nil
	}
	if !(x[1] > 0) {
		return nil, fmt.Errorf("cannot tell lengths: %q has a scale that is not over 0", string(s))
	}
	if name(string(s)) == "gev" {
		return func(u float64) float64 { return gev(x[0], x[1], x[2], u) }, nil
	}
	return func(u float64) float64 { return pareto(x[0], x[1], x[2], u) }, nil
}

// gev is the quantile function of the generalized extreme value distribution.
func gev(location, scale, shape, u float64) float64 {
	if shape == 0 {
		return location - scale*math.Log(-math.Log(u))
	}
	return location + scale*(math.Pow(-math.Log(u), -shape)-1)/shape
}

// pareto is the quantile function of the generalized Pareto distribution.
func pareto(location, scale, shape, u float64) float64 {
	if shape == 0 {
		return location - scale*math.Log1p(-u)
	}
	return location + scale*(math.Pow(1-u, -shape)-1)/shape
}

// etcShort are the shares of values of 0 to 14 bytes in ETC, and etcScale and etcShape describe the longer
// ones, by table 5 and section 5.1 of the source of [ETC].
var etcShort = [...]float64{
	0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606,
	0.00023, 0.00837, 0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
}

const etcScale, etcShape = 214.476, 0.348238

func etcValue(u float64) float64 {
	sum := 0.0
	for size, share := range etcShort {
		if sum += share; u < sum {
			return float64(size)
		}
	}
	return pareto(float64(len(etcShort)), etcScale, etcShape, (u-sum)/(1-sum))
}

// Lay returns the lengths of n things, each between low and high: thing i is as long in every run. The word
// must be valid.
func (s Sizes) Lay(n, low, high int) []uint32 {
	quantile, err := s.Quantiles()
	if err != nil {
		panic("bug: " + err.Error())
	}
	all := make([]uint32, n)
	for i := range all {
		size := math.Floor(quantile(scattered(uint64(i))))
		all[i] = uint32(min(max(size, float64(low)), float64(high))) // infinite ones too
	}
	return all
}

// scattered is a number from just over 0 to below 1 that looks like chance, but is the same for i each time (splitmix64).
func scattered(i uint64) float64 {
	i = (i + 1) * 0x9e3779b97f4a7c15
	i = (i ^ i>>30) * 0xbf58476d1ce4e5b9
	i = (i ^ i>>27) * 0x94d049bb133111eb
	return (float64((i^i>>31)>>11) + 0.5) / (1 << 53)
}

// Fixed is for lengths that are all the same.
func Fixed(size int) Sizes { return Sizes(strconv.Itoa(size)) }
