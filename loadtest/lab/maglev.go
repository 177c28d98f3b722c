package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/maglev"
)

// exampleName finds a name that begins with a prefix and has the given offset and skip in a table of seven slots, as
// the example gives those and no names.
func exampleName(prefix string, offset, skip uint64) string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s-%d", prefix, n)
		if xxhash.Sum64String(name)%7 == offset && xxhash.Sum64String(name+"\x00")%6+1 == skip {
			return name
		}
	}
}

// slots are the homes of a table's slots in order.
func slots(names []string, size int) (string, error) {
	t, err := maglev.NewSize(names, nil, size)
	if err != nil {
		return "", err
	}
	var homes []string
	for _, home := range t.Spans() {
		homes = append(homes, names[home][:2])
	}
	return strings.Join(homes, " "), nil
}

func maglevExample(r *report) error {
	names := []string{exampleName("B0", 2, 3), exampleName("B1", 5, 1), exampleName("B2", 2, 5)}
	three, err1 := slots(names, 7)
	two, err2 := slots([]string{names[0], names[2]}, 7)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	r.compare()
	r.note("B0: offset 2, skip 3. B1: 5, 1. B2: 2, 5. The names are chosen so that their hashes say that: %s.", strings.Join(names, ", "))
	r.exact("table of seven slots", three, "B2 B0 B0 B2 B0 B1 B1")
	r.exact("without B1", two, "B2 B0 B0 B2 B0 B0 B2")
	differ := 0
	for i, home := range strings.Fields(three) {
		if strings.Fields(two)[i] != home {
			differ++
		}
	}
	r.exact("slots that change when B1 leaves", fmt.Sprint(differ), "2")
	count := func(table string) (y []float64) {
		for _, n := range []string{"B0", "B1", "B2"} {
			y = append(y, float64(strings.Count(table, n)))
		}
		return y
	}
	r.bars("Slots of seven", "slots", false, []string{"B0", "B1", "B2"}, plot.Series{Name: "with B1", Y: count(three)}, plot.Series{Name: "without", Y: count(two)})
	return nil
}

// maglevShares is how even tables are, and what does not fit.
func maglevShares(r *report) error {
	sizes := []int{3, 10, 100, 1000}
	r.compare()
	least, most := plot.Series{Name: "least"}, plot.Series{Name: "most"}
	var groups []string
	for _, n := range sizes {
		t, err := maglev.New(names(n), nil)
		if err != nil {
			return err
		}
		low, high := slices.Min(t.Shares()), slices.Max(t.Shares())
		floor := uint64(t.Slots() / n)
		r.exact(fmt.Sprintf("slots of %d at each of %d servers", t.Slots(), n), fmt.Sprintf("%d to %d", low, high), fmt.Sprintf("%d to %d", floor, floor+1))
		least.Y, most.Y = append(least.Y, float64(low)*float64(n)/float64(t.Slots())), append(most.Y, float64(high)*float64(n)/float64(t.Slots()))
		groups = append(groups, fmt.Sprint(n))
	}
	_, err := maglev.NewSize(names(8), nil, 7)
	r.shape("eight servers in seven slots", map[bool]string{true: "refused", false: "taken"}[err != nil], "some get nothing", err != nil)
	r.bars("Share of the least and the most loaded server", "times the mean", false, groups, least, most)
	return nil
}
