package view

import "time"

// alarms remembers since when digests differ.
type alarms struct {
	list, placement time.Time // zero while they do not
	now             time.Time
}

// compare looks whether the others have the same list, and make the same of it.
func (n *Node) compare(now time.Time) {
	list, placement := false, false
	for _, p := range n.others {
		switch {
		case !p.fresh:
		case p.List != n.listed:
			list = true
		case p.Placement != n.view.Digest:
			placement = true
		}
	}
	since(&n.alarms.list, list, now)
	since(&n.alarms.placement, placement, now)
	n.alarms.now = now
}

func since(t *time.Time, on bool, now time.Time) {
	switch {
	case !on:
		*t = time.Time{}
	case t.IsZero():
		*t = now
	}
}

func lasting(t, now time.Time, bound time.Duration) bool {
	return !t.IsZero() && now.Sub(t) >= bound
}

// Stats is what a node can say about itself.
type Stats struct {
	// Known, Present and Voters count routers, this one included: all, those that can be
	// heard, and those whose verdicts count.
	Known, Present, Voters int
	// Frozen says that too few can be heard to decide anything, Abstains that this router
	// does not trust its own observations.
	Frozen, Abstains bool
	// ListsDiffer and PlacementsDiffer are the alarms: they have for longer than allowed.
	ListsDiffer, PlacementsDiffer bool
	// Agreed says that all routers can be heard and have this placement: what it does not
	// count gets no more requests, so a drained server may be stopped.
	Agreed bool
	// Skew is how far the other routers' clocks are from ours, as a median.
	Skew time.Duration
	// Version is the view's.
	Version uint64
	// Changes counts changes of the placement since the start.
	Changes uint64
}

// Stats returns the present figures.
func (n *Node) Stats() Stats {
	same := n.alarms.list.IsZero() && n.alarms.placement.IsZero()
	return Stats{
		Agreed: same && n.present() == n.known(),
		Known:  n.known(), Present: n.present(), Voters: n.voters(),
		Frozen: n.frozen(), Abstains: n.self.Abstains,
		ListsDiffer:      lasting(n.alarms.list, n.alarms.now, n.cfg.ListAlarm),
		PlacementsDiffer: lasting(n.alarms.placement, n.alarms.now, n.cfg.PlacementAlarm),
		Skew:             n.skew, Version: n.view.Version, Changes: n.moved,
	}
}
