package router

import "cacherouter/memproto"

// flush sends a flush_all to every server and answers when all have done it. A server that
// cannot be reached is told later by membership; one that others may still read from
// keeps the client from being told OK.
func (s *session) flush(r *memproto.Request, quiet bool, line []byte) {
	w := s.w
	f := s.startFan(r)
	f.request.quiet = quiet
	f.merge = mergeFlush
	for _, n := range w.nodes {
		switch {
		case n.answers():
		case n.use.Writes == WriteNowhere:
			w.stats.Unwritable++
			f.finish(unwritable)
			return
		default:
			w.missedAll(n)
		}
	}
	f.begin()
	w.sealAll()
	w.epochs.BeganAll()
	w.holds.keep(w, func() bool { // copies that are on their way must not come after it
		if w.epochs.FillsAny() {
			return false
		}
		f.ask(line)
		f.arrived()
		return true
	})
}

func (w *worker) missedAll(n *node) {
	if m := w.r.cfg.Membership; m != nil {
		m.MissedAll(n.use.Name)
	}
}

// mergeFlush says OK if every server did.
func mergeFlush(f *fan) {
	w := f.request.w
	var reply []byte
	for _, p := range f.parts {
		switch {
		case p.failed != 0:
			w.missedAll(p.node)
			reply = w.failureReply(memproto.FlushAll, nil, p.failed)
		case string(p.reply) != "OK\r\n" && reply == nil:
			reply = p.reply
		}
	}
	if reply != nil { // some may yet do it
		w.holds.doubtAll(w)
		f.finish(reply)
		return
	}
	w.epochs.EndedAll()
	f.finish([]byte("OK\r\n"))
}
