package admin

import (
	"math"
	"time"

	"cacherouter/membership"
	"cacherouter/router"
)

// Handover is what /api/v1/handover says: what is done so that a changed placement begins
// warm.
type Handover struct {
	// Active says that servers are asked for what they held before the last change.
	Active bool `json:"active"`
	// Since is when the present placement began, Until when the servers before are asked no
	// more, and Remaining the time until then.
	Since     *time.Time `json:"since,omitempty"`
	Until     *time.Time `json:"until,omitempty"`
	Remaining float64    `json:"remaining_seconds"`
	// Progress is how much of the time has passed, 0 to 1.
	Progress float64 `json:"progress"`
	// Moved is the share of the keys whose home is another than before, 0 to 1.
	Moved float64 `json:"moved_share"`
	// Came and Left are the servers that hold keys now and did not, and the other way round.
	Came []string `json:"came"`
	Left []string `json:"left"`
	// Next names the servers of the placement that will replace this one within seconds.
	Next []string `json:"next"`
	// Pulled are items looked for where they lived before, Cleaned what was deleted there,
	// Uncleaned what could not be.
	Pulled    float64 `json:"pulled_per_second"`
	Cleaned   float64 `json:"cleaned_per_second"`
	Uncleaned float64 `json:"uncleaned_per_second"`
}

// handover describes the hand-over; without membership there is none.
func (s *Server) handover(f *survey) Handover {
	h := Handover{
		Came: []string{}, Left: []string{}, Next: []string{},
		Pulled:    f.w.rate(func(s *router.Snapshot) uint64 { return s.Pulled }),
		Cleaned:   f.w.rate(func(s *router.Snapshot) uint64 { return s.Cleaned }),
		Uncleaned: f.w.rate(func(s *router.Snapshot) uint64 { return s.Uncleaned }),
	}
	if f.state == nil {
		return h
	}
	for _, a := range f.state.After {
		h.Next = append(h.Next, a.Name)
	}
	h.Since = timeOrNil(f.state.Since)
	now := time.Now()
	if len(f.state.Before) == 0 || !now.Before(f.state.Until) {
		return h
	}
	h.Active, h.Until = true, timeOrNil(f.state.Until)
	left, whole := f.state.Until.Sub(now), f.state.Until.Sub(f.state.Since)
	h.Remaining = math.Round(left.Seconds()*10) / 10
	h.Progress = min(1, max(0, 1-left.Seconds()/whole.Seconds()))
	placed := f.state.Placed()
	h.Came, h.Left = without(placed, f.state.Before), without(f.state.Before, placed)
	h.Moved = s.pictures.moved(f.w.to.table)
	return h
}

// without returns the names of those in a that are not in b.
func without(a, b []membership.Server) []string {
	in := make(map[string]bool, len(b))
	for i := range b {
		in[b[i].Name] = true
	}
	names := []string{}
	for i := range a {
		if !in[a[i].Name] {
			names = append(names, a[i].Name)
		}
	}
	return names
}
