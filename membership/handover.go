package membership

import (
	"slices"
	"time"

	"cacherouter/membership/view"
)

// handover is the time after a change of the placement in which servers are asked for what
// they held before it.
type handover struct {
	digest uint64 // of the placement that began
	until  time.Time
	// spoilt are servers that could not be reached for a moment since: what was to be
	// deleted there may still be there, so they are not asked again.
	spoilt map[string]bool
}

// changesLocked adds to a state the placement before and the one to come.
func (c *Cluster) changesLocked(s *State, v *view.View, now time.Time) {
	switch {
	case c.handover.digest == v.Digest:
	case c.handover.digest == 0: // the first one
		c.handover.digest = v.Digest
	default:
		c.handover = handover{v.Digest, now.Add(c.cfg.Handover), map[string]bool{}}
	}
	if now.Before(c.handover.until) && v.Before != nil {
		s.Until = c.handover.until
		for _, b := range v.Before {
			s.Before = append(s.Before, c.formerLocked(b, v, now))
		}
		for i := range s.Servers {
			s.Servers[i].Reads = s.Servers[i].Reads && (s.Servers[i].Status == view.In || !c.handover.spoilt[s.Servers[i].Name])
		}
	}
	for _, a := range c.node.Next(now) {
		p, listed := v.Find(a.Name)
		if !listed {
			p = view.Placed{Server: a}
		}
		s.After = append(s.After, c.serverLocked(p, now))
	}
}

// formerLocked returns a server of the placement before, with the weight that it had. One
// that has left the list is not watched any more, and is asked until it fails for the
// first time.
func (c *Cluster) formerLocked(b view.Server, v *view.View, now time.Time) Server {
	s := Server{Name: b.Name, Address: b.Address, Status: view.Draining, Writes: Failover, Reads: true}
	if p, listed := v.Find(b.Name); listed {
		s = c.serverLocked(p, now)
	}
	s.Weight = b.Weight
	if s.Status != view.In { // one that is in has a journal, and returns clean
		c.handover.spoilt[b.Name] = c.handover.spoilt[b.Name] || !s.Reads
		s.Reads = !c.handover.spoilt[b.Name]
	}
	return s
}

// failedLocked notes that requests to a server that has left the list have failed.
func (c *Cluster) failedLocked(server string) (changed bool) {
	former := slices.ContainsFunc(c.state.Load().Before, func(s Server) bool { return s.Name == server })
	if _, listed := c.node.View().Find(server); listed || !former || c.handover.spoilt[server] {
		return false
	}
	c.handover.spoilt[server] = true
	return true
}
