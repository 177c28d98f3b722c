package health

import "time"

// machine is the state of one server.
//
//	new ──▶ Probation ──ok──▶ SlowStart ──window over──▶ Up ◀──ok, no longer slow──┐
//	            ▲  │              │                       └──failure, or slow──▶ Suspect
//	          rise └──failure──┐  └──fall──┐                                    │
//	            └───────────── Down ◀──────┴───────────fall, too many errors────┘
type machine struct {
	cfg     *Config
	state   State
	entered time.Time
	reason  string // of the last change

	streak       int       // failures since the last success
	failingSince time.Time // of the first of them; zero when there is none
	probesFailed int       // in a row
	probesGood   int       // in a row
	goodSince    time.Time // of the first of those; zero when there is none

	requests window
	slow     bool
	ejected  int       // ejections for errors in a row
	outUntil time.Time // of such an ejection; zero when Down has another reason
	busy     bool      // the one request of probation is out
}

func newMachine(c *Config, known bool, now time.Time) *machine {
	m := &machine{cfg: c, state: Probation, entered: now}
	if known {
		m.state, m.goodSince = Up, now
	}
	m.requests.advance(c.Window, now)
	return m
}

func (m *machine) enter(s State, reason string, now time.Time) {
	m.state, m.reason, m.entered, m.busy = s, reason, now, false
}

// observe takes in what happened to requests. A batch with a success ends the streak
// before it, whatever loop it came from.
func (m *machine) observe(o Observation, now time.Time) {
	m.requests.advance(m.cfg.Window, now)
	m.requests.add(o)
	failed := o.Errors()
	if o.OK > 0 {
		failed = o.Streak
		m.succeeded(now)
	}
	if failed > 0 {
		m.failed(failed, now, now)
	}
}

// probe takes in the result of a probe that began at started.
func (m *machine) probe(ok bool, started, now time.Time) {
	if !ok {
		m.probesFailed++
		m.probesGood, m.goodSince = 0, time.Time{}
		m.failed(1, started, now)
		return
	}
	if m.probesGood++; m.goodSince.IsZero() {
		m.goodSince = started
	}
	m.probesFailed = 0
	m.succeeded(now)
	if m.state == Down && m.outUntil.IsZero() && m.probesGood >= m.cfg.Rise {
		m.again("answers probes", now)
	}
}

func (m *machine) succeeded(now time.Time) {
	m.streak, m.failingSince, m.busy = 0, time.Time{}, false
	switch {
	case m.state == Probation:
		m.enter(SlowStart, "answered", now)
	case m.state == Suspect && !m.slow:
		m.enter(Up, "answers", now)
	}
}

func (m *machine) failed(n int, since, now time.Time) {
	m.streak += n
	if m.failingSince.IsZero() {
		m.failingSince = since
	}
	switch {
	case m.state == Down:
		m.outUntil = time.Time{} // unreachable is the stronger reason
	case m.state == Probation:
		m.goDown("failed in probation", now)
	case m.streak >= m.cfg.Fall:
		m.goDown("failures in a row", now)
	case m.state == Up:
		m.enter(Suspect, "a failure", now)
	}
}

// goDown makes the server unreachable: its good probes have to begin anew.
func (m *machine) goDown(reason string, now time.Time) {
	m.probesGood, m.goodSince = 0, time.Time{}
	m.enter(Down, reason, now)
}

// tick lets time pass.
func (m *machine) tick(now time.Time) {
	m.requests.advance(m.cfg.Window, now)
	switch {
	case m.state == SlowStart && now.Sub(m.entered) >= m.cfg.SlowStart:
		m.ejected = 0
		m.enter(Up, "warm", now)
	case m.state == Down && !m.outUntil.IsZero() && !now.Before(m.outUntil):
		m.outUntil = time.Time{}
		m.again("ejection over", now)
	}
}

// again gives a server another chance. What failed before is what it was out for, and is
// not held against it once more.
func (m *machine) again(reason string, now time.Time) {
	m.requests = window{current: m.requests.current}
	m.enter(Probation, reason, now)
}

// eject takes the server out for its errors although it can be reached.
func (m *machine) eject(now time.Time) {
	m.ejected++
	m.enter(Down, "too many errors", now)
	m.outUntil = now.Add(time.Duration(min(m.ejected, 10)) * m.cfg.Ejection)
}

// setSlow notes that the server is slow, or no longer.
func (m *machine) setSlow(slow bool, now time.Time) {
	m.slow = slow
	switch {
	case slow && m.state == Up:
		m.enter(Suspect, "much slower than the others", now)
	case !slow && m.state == Suspect && m.streak == 0:
		m.enter(Up, "no longer slow", now)
	}
}

// forget voids all evidence of failure: it was gathered while we were not running.
func (m *machine) forget() {
	m.streak, m.failingSince, m.probesFailed = 0, time.Time{}, 0
}

// rewind makes sense of a clock that was set back: nothing lies in the future.
func (m *machine) rewind(now time.Time) {
	m.requests = window{}
	m.requests.advance(m.cfg.Window, now)
	if m.entered.After(now) {
		m.entered = now
	}
	if m.goodSince.After(now) {
		m.goodSince = now
	}
	if !m.outUntil.IsZero() {
		m.outUntil = now.Add(m.cfg.Ejection)
	}
}

// unreachable reports whether the server is down because it does not answer.
func (m *machine) unreachable() bool { return m.state == Down && m.outUntil.IsZero() }
