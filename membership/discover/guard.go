package discover

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Guard decides whether an answer is to be believed. The zero value of a field means its
// default. A Guard is not safe for concurrent use.
type Guard struct {
	// Max is how many servers there may be; default 1,000. An answer with more is refused.
	Max int
	// Confirm is how many equal answers in a row it takes to remove servers, and Over the
	// time they must span; defaults 3 and 30 s.
	Confirm int
	Over    time.Duration
	// Trusted removes servers at the first answer, unless more than MaxShrink per mille of
	// them are missing; for what an operator wrote himself. MaxShrink is 500 by default.
	Trusted   bool
	MaxShrink int

	good  []Server // in force, sorted
	doubt []Server // the answer that waits to be confirmed
	seen  int      // how often in a row
	since time.Time
}

// The reasons for which an answer is not taken.
var (
	// ErrEmpty: it names no server.
	ErrEmpty = errors.New("the answer names no server")
	// ErrTooMany: it names more servers than allowed.
	ErrTooMany = errors.New("the answer names too many servers")
	// ErrUnconfirmed: servers are missing from it, and it has to be seen again.
	ErrUnconfirmed = errors.New("servers are missing from the answer, which is not confirmed yet")
)

// Judge returns the list to use after an answer: the answer, or the last good list and
// why the answer is not taken. What an answer adds is taken at once even if what it lacks
// is not believed. The slice is not to be changed.
func (g *Guard) Judge(answer []Server, now time.Time) ([]Server, error) {
	next := sorted(answer)
	switch limit := cmp.Or(g.Max, 1000); {
	case len(next) == 0:
		g.seen = 0
		return g.good, ErrEmpty
	case len(next) > limit:
		g.seen = 0
		return g.good, fmt.Errorf("%w: %d, at most %d are allowed", ErrTooMany, len(next), limit)
	}
	gone := missing(g.good, next)
	if len(gone) == 0 || g.Trusted && len(gone)*1000 <= cmp.Or(g.MaxShrink, 500)*len(g.good) || g.confirmed(next, now) {
		g.good, g.seen = next, 0
		return g.good, nil
	}
	g.good = sorted(append(slices.Clone(next), gone...))
	return g.good, ErrUnconfirmed
}

// confirmed counts equal answers.
func (g *Guard) confirmed(next []Server, now time.Time) bool {
	if g.seen == 0 || !slices.EqualFunc(g.doubt, next, sameName) {
		g.doubt, g.seen, g.since = next, 0, now
	}
	g.seen++
	return g.seen >= cmp.Or(g.Confirm, 3) && now.Sub(g.since) >= cmp.Or(g.Over, 30*time.Second)
}

func sameName(a, b Server) bool { return a.Name == b.Name }

// missing returns the servers of a, sorted, whose names b, sorted, does not have.
func missing(a, b []Server) []Server {
	var gone []Server
	for _, s := range a {
		_, ok := slices.BinarySearchFunc(b, s, func(x, y Server) int { return cmp.Compare(x.Name, y.Name) })
		if !ok {
			gone = append(gone, s)
		}
	}
	return gone
}
