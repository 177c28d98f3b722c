package admin

import (
	"sync"

	"cacherouter/router"
)

// pictures work placements out once each. Any goroutine may use it.
type pictures struct {
	placing func() *Placing // nil, or what it returns, where placements cannot be shown

	mu       sync.Mutex
	made     *Placement // guarded by mu, as is all below
	compared bool       // with the placement before
	share    float64    // that was elsewhere then
}

// now returns the placement in force, nil if it cannot be shown. It is not to be changed.
func (p *pictures) now() *Placement {
	if p.placing == nil {
		return nil
	}
	now := p.placing()
	if now == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nowLocked(now)
}

func (p *pictures) nowLocked(now *Placing) *Placement {
	if p.made == nil || p.made.Digest != now.Digest || p.made.Distribution != now.Distribution {
		p.made, p.compared = placementOf(now), false
	}
	return p.made
}

// moved returns the share of the keys whose home was another in the placement before, as of
// the last hash of each span: that is exact for tables of the same size. It is not known, and 0,
// where that placement has another hash for keys.
func (p *pictures) moved(t *router.Table) float64 {
	if t.Before.Picker == nil || t.Before.Hash != nil || p.placing == nil {
		return 0
	}
	now := p.placing()
	if now == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nowLocked(now)
	if !p.compared {
		p.compared, p.share = true, movedShare(now, t)
	}
	return p.share
}

func movedShare(now *Placing, t *router.Table) (share float64) {
	var was []int
	for width, at := range newCells(now.Spans).walk(now.Spans) {
		was = t.Before.Pick(was[:0], at.last, 1)
		if t.Servers[was[0]].Name != now.Table.Servers[at.home].Name {
			share += width
		}
	}
	return share
}
