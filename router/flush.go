package router

import (
	"slices"

	"cacherouter/memproto"
)

// mayFlush reports whether clients may flush all pools.
func (f *front) mayFlush() bool {
	return !slices.ContainsFunc(f.workers, func(w *worker) bool { return !w.p.cfg.FlushAll })
}

// flush sends a flush_all to every server and answers when all have done it. A server that
// cannot be reached is told later by membership; one that others may still read from
// keeps the client from being told OK.
func (s *session) flush(r *memproto.Request, quiet bool, line []byte) {
	f := s.startFan(r)
	f.request.quiet = quiet
	f.merge = mergeFlush
	for _, w := range f.workers {
		if !w.mayMissFlush() {
			w.stats.Unwritable++
			f.finish(unwritable)
			return
		}
	}
	f.begin()
	for _, w := range f.workers {
		w.flush(f, line)
	}
	f.arrived()
}

// mayMissFlush reports whether a pool's servers that do not answer may be flushed later, and
// sees to it that they are.
func (w *worker) mayMissFlush() bool {
	for _, n := range w.nodes {
		switch {
		case n.use.answers():
		case n.use.Writes == WriteNowhere:
			return false
		default:
			w.missedAll(n)
		}
	}
	return true
}

// flush sends a flush_all to the pool's servers when no copies are on their way any more:
// those must not come after it.
func (w *worker) flush(f *fan, line []byte) {
	w.sealAll()
	w.epochs.BeganAll()
	f.left++
	w.holds.keep(w, func() bool {
		if w.epochs.FillsAny() {
			return false
		}
		for _, p := range f.parts {
			if p.w == w {
				p.send(line)
			}
		}
		f.arrived()
		return true
	})
}

func (w *worker) missedAll(n *node) {
	if m := w.p.cfg.Membership; m != nil {
		m.MissedAll(n.use.Name)
	}
}

// mergeFlush says OK if every server did.
func mergeFlush(f *fan) {
	var reply []byte
	for _, p := range f.parts {
		switch {
		case p.failed != 0:
			p.w.missedAll(p.node)
			reply = p.w.failureReply(memproto.FlushAll, nil, p.failed)
		case string(p.reply) != "OK\r\n" && reply == nil:
			reply = p.reply
		}
	}
	if reply != nil { // some may yet do it
		for _, w := range f.workers {
			w.holds.doubtAll(w)
		}
		f.finish(reply)
		return
	}
	for _, w := range f.workers {
		w.epochs.EndedAll()
	}
	f.finish([]byte("OK\r\n"))
}
