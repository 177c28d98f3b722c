package maglev

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The worked example with seven slots, and the same without the second server: only its two slots change hands.
func TestWorkedExample(t *testing.T) {
	f := func(walks []preference, want []uint16) {
		t.Helper()
		weights := make([]int, len(walks))
		for i := range weights {
			weights[i] = 1
		}
		if diff := cmp.Diff(want, populate(7, walks, weights)); diff != "" {
			t.Error(diff)
		}
	}
	b0, b1, b2 := preference{at: 2, skip: 3}, preference{at: 5, skip: 1}, preference{at: 2, skip: 5}
	f([]preference{b0, b1, b2}, []uint16{2, 0, 0, 2, 0, 1, 1})
	f([]preference{b0, b2}, []uint16{1, 0, 0, 1, 0, 0, 1})
}
