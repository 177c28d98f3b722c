package prefetch

import "testing"

// Asking for memory that is not there does no harm.
func TestAnyPointerWillDo(t *testing.T) {
	for _, p := range []*byte{nil, new(byte)} {
		Line(p)
		Lines(p)
	}
}
