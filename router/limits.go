package router

import "time"

// watch is what a session remembers to be judged idle or slow.
type watch struct {
	active  time.Duration // when the client last asked something, on the loop's clock
	stalled time.Time     // since when it has taken nothing of what waits for it; zero if it has
	written uint64        // what it had taken when last looked at
}

// full reports whether there are more clients than may be. The one at hand is counted.
func (f *front) full() bool {
	limit := f.r.cfg.MaxClients
	return limit > 0 && f.r.clients() > int64(limit)
}

// turnAway closes a client that is one too many.
func (s *session) turnAway() {
	s.front.stats.TurnedAway++
	if s.front.r.cfg.TellFull {
		s.conn.WriteString("ERROR Too many open connections\r\n")
	}
	s.end()
}

// sweepEvery returns how often clients are looked at; 0 means never.
func (f *front) sweepEvery() time.Duration {
	c := &f.r.cfg
	d := min(orHuge(c.IdleTimeout), orHuge(c.SlowTimeout))
	if d == huge {
		return 0
	}
	return max(d/8, time.Millisecond)
}

const huge = time.Duration(1<<63 - 1)

func orHuge(d time.Duration) time.Duration {
	if d == 0 {
		return huge
	}
	return d
}

// sweepLater arms the next look at the clients. One timer serves all: they are looked at
// every eighth of the shortest timeout, so a client is closed up to so much late.
func (f *front) sweepLater() {
	every := f.sweepEvery()
	if every > 0 && len(f.sessions) > 0 && !f.sweeper.Armed() {
		f.sweeper.Func = f.sweep
		f.loop.Set(&f.sweeper, f.loop.Now().Add(every))
	}
}

// sweep closes clients that are idle or slow.
func (f *front) sweep() {
	for s := range f.sessions {
		switch {
		case s.slow():
			f.stats.ClosedSlow++
			s.conn.Close()
		case s.idle():
			f.stats.ClosedIdle++
			s.end()
		}
	}
	f.sweepLater()
}

// idle reports whether the client has asked nothing for too long.
func (s *session) idle() bool {
	limit := s.front.r.cfg.IdleTimeout
	return limit > 0 && s.n == 0 && !s.ended && !s.by.local && s.front.loop.Elapsed()-s.watch.active >= limit
}

// slow reports whether the client has taken none of its replies for too long.
func (s *session) slow() bool {
	limit := s.front.r.cfg.SlowTimeout
	if written := s.conn.Written(); s.conn.Buffered() == 0 || written != s.watch.written {
		s.watch.written, s.watch.stalled = written, time.Time{}
		return false
	}
	if s.watch.stalled.IsZero() {
		s.watch.stalled = s.front.loop.Now()
	}
	return limit > 0 && s.front.loop.Now().Sub(s.watch.stalled) >= limit
}
