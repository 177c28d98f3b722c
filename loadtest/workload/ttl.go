package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Lives is how long items are to live, in one word: a duration as 30s or 12h, or several with their shares,
// as 1h:0.67,2h:0.33. The empty word and 0s are for ever. Servers know seconds only.
type Lives string

// maxLife is how long memcached takes a number of seconds for a duration; a larger one is a date for it.
const maxLife = 30 * 24 * time.Hour

// Validate says what is wrong with the word.
func (l Lives) Validate() error {
	_, err := l.parse()
	return err
}

// life is one of the durations.
type life struct {
	seconds uint32
	upTo    float64 // the shares up to here, added
}

func (l Lives) parse() (all []life, err error) {
	sum := 0.0
	for _, part := range strings.Split(string(l), ",") {
		text, weight, several := strings.Cut(part, ":")
		share := 1.0
		if several {
			share, err = strconv.ParseFloat(weight, 64)
		}
		if err != nil || !(share > 0) {
			return nil, fmt.Errorf("cannot tell lives: %q of %q has no share over 0", part, string(l))
		}
		var d time.Duration
		if text != "" {
			d, err = time.ParseDuration(text)
		}
		if err != nil || d < 0 || d > maxLife || d%time.Second != 0 {
			return nil, fmt.Errorf("cannot tell lives: %q of %q is no duration of whole seconds up to %v", text, string(l), maxLife)
		}
		sum += share
		all = append(all, life{uint32(d / time.Second), sum})
	}
	for i := range all {
		all[i].upTo /= sum
	}
	return all, nil
}

// Chooser returns what draws lives, in seconds, 0 for ever. The word must be valid.
func (l Lives) Chooser(rng *rand.Rand) func() uint32 {
	all, err := l.parse()
	if err != nil {
		panic("bug: " + err.Error())
	}
	if len(all) == 1 {
		return func() uint32 { return all[0].seconds }
	}
	return func() uint32 {
		u, i := rng.Float64(), 0
		for i < len(all)-1 && u >= all[i].upTo {
			i++
		}
		return all[i].seconds
	}
}
