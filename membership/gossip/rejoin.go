package gossip

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// maxTargets is how many routers are asked at once: any of them knows the others.
const maxTargets = 3

// remember is for how long a member that went is tried again.
const remember = 24 * time.Hour

// rejoin keeps reaching for routers that are not there. memberlist forgets members that
// were gone for a while, and then two halves of a partition would never meet again.
func (g *Gossip) rejoin(ctx context.Context) {
	alone, pause := false, time.Second
	for first := true; ; first = false {
		missing := g.missing(ctx)
		joined := g.join(missing)
		if first {
			g.mark(ctx, g.joined)
		}
		switch {
		case len(missing) == 0 || joined || len(g.list.Load().members()) > 1:
			alone, pause = false, g.cfg.Rejoin
		case !alone:
			g.cfg.Log.Warn("no other router answers, starting alone and trying on", "join", g.cfg.Join)
			alone = true
		default:
			pause = min(2*pause, g.cfg.Rejoin)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.again:
		case <-time.After(jitter(pause)):
		}
	}
}

// Meet exchanges full states with some of the members, and returns when theirs have been given to
// Merge, or when the context ends.
func (g *Gossip) Meet(ctx context.Context) {
	var others []string
	for _, m := range g.Members() {
		if m.Address != g.Address() {
			others = append(others, m.Address)
		}
	}
	if !g.join(others) {
		return
	}
	taken := make(chan struct{})
	g.mark(ctx, taken)
	select {
	case <-taken:
	case <-ctx.Done():
	}
}

// join asks some of the addresses, and reports whether any answered.
func (g *Gossip) join(addrs []string) bool {
	if len(addrs) == 0 {
		return false
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	n, err := g.list.Load().join(addrs[:min(len(addrs), maxTargets)])
	if n == 0 {
		g.cfg.Log.Debug("cannot join", "addrs", addrs, "err", err)
	}
	return n > 0
}

// missing returns addresses of routers that are not there: those to join, and those that
// have been members.
func (g *Gossip) missing(ctx context.Context) []string {
	here := map[string]bool{g.Address(): true}
	for _, m := range g.list.Load().members() {
		here[m.Address] = true
	}
	var all []string
	add := func(addr string) {
		if !here[addr] && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	for _, j := range g.cfg.Join {
		for _, addr := range resolve(ctx, j) {
			add(addr)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for addr, seen := range g.known {
		if time.Since(seen) > remember {
			delete(g.known, addr)
			continue
		}
		if here[addr] {
			g.known[addr] = time.Now()
		}
		add(addr)
	}
	return all
}
