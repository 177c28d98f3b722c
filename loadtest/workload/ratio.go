package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Ratio is how many requests set, get, and get several keys at once, of each other. It is spelled
// SETS:GETS or SETS:GETS:MULTIGETS, as 1:10.
type Ratio struct{ Sets, Gets, Multigets int }

// UnmarshalText reads what a user has spelled.
func (r *Ratio) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	var n [3]int
	ok := len(parts) == 2 || len(parts) == 3
	for i := range min(len(parts), 3) {
		v, err := strconv.Atoi(parts[i])
		ok = ok && err == nil && v >= 0 && v <= 1e6
		n[i] = v
	}
	if !ok || n[0]+n[1]+n[2] == 0 {
		return fmt.Errorf("cannot read %q as sets:gets or sets:gets:multigets, as in 1:10", text)
	}
	*r = Ratio{n[0], n[1], n[2]}
	return nil
}

// MarshalText spells it.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Ratio) String() string {
	if r.Multigets == 0 {
		return fmt.Sprintf("%d:%d", r.Sets, r.Gets)
	}
	return fmt.Sprintf("%d:%d:%d", r.Sets, r.Gets, r.Multigets)
}
