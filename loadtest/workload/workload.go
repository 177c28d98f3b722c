// Package workload is what clients ask a cache for: which keys, how long keys and values are, how long they
// live, and how many requests write.
//
// All of it is spelled in one word each, so that it fits on a command line and into a report, and all of it
// is drawn from generators that are given, so that the same seed offers the same load.
package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// cut splits a word at its colons and reads all parts but the first as numbers. It is an error if there
// are not as many as wanted.
func cut(text string, wanted int) (numbers []float64, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != wanted+1 {
		return nil, fmt.Errorf("%q needs %d numbers behind its name, each after a colon", text, wanted)
	}
	for _, part := range parts[1:] {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %q is no number", text, part)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// name is what stands before the first colon.
func name(text string) string {
	word, _, _ := strings.Cut(text, ":")
	return word
}
