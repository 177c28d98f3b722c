package health

import "time"

// Opinion is what a router tells the others about a server.
type Opinion uint8

// The opinions.
const (
	// Unsure: it has failed a little, or answers again only since now. Counts for nothing.
	Unsure Opinion = iota
	// Fine: it answers.
	Fine
	// Failing: it is out for this router.
	Failing
	// Dead: it has been for long enough, and no probe was answered meanwhile.
	Dead
)

var opinionText = [...]string{"unsure", "fine", "failing", "dead"}

// String names the opinion in one word.
func (o Opinion) String() string { return opinionText[o] }

// Verdict is an opinion and since when the server has been answering or failing.
type Verdict struct {
	Opinion Opinion
	Since   time.Time
}

// verdict forms the opinion. Too many errors, or being slow, make no server dead: they
// are reasons to send it fewer reads and no reason to move its keys.
func (m *machine) verdict(now time.Time) Verdict {
	switch {
	case m.unreachable() && m.failingSince.IsZero():
		return Verdict{Unsure, now}
	case m.unreachable():
		v := Verdict{Failing, m.failingSince}
		if m.probesFailed >= 2 && now.Sub(m.failingSince) >= m.cfg.Dead {
			v.Opinion = Dead
		}
		return v
	case m.streak > 0 || m.goodSince.IsZero():
		return Verdict{Unsure, now}
	}
	return Verdict{Fine, m.goodSince}
}
