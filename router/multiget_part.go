package router

import (
	"cacherouter/backend"
	"cacherouter/bounded"
	"cacherouter/memproto"
)

// part is the share of one server and lane in a window.
type part struct {
	gather *gather
	w      *worker
	node   *node
	lane   backend.Lane
	route  int // place in worker.open
	call   backend.Call
	charge charge
	line   []byte
	asked  []int // places in gather.asked
	next   int   // the first of asked that can still be answered
	values []byte
	failed backend.Failure // its keys may be asked of others
}

func (p *part) send() {
	p.line = append(p.line, "\r\n"...)
	p.call.Owner = p
	p.call.Verb = p.gather.verb
	p.call.Repeatable = true
	p.w.load(&p.charge, p.node, bounded.Cost(0, len(p.asked)))
	p.node.Send(&p.call, p.lane, p.line)
}

// Replied takes one VALUE block, or the end of the part.
func (p *part) Replied(_ *backend.Call, u memproto.Unit, b []byte) bool {
	switch {
	case memproto.IsValue(b):
		return p.value(b)
	case u.Fault:
		p.w.stats.Faulty++
		p.gather.fault = append(p.gather.fault[:0], b...)
	default:
		p.missing()
	}
	p.noteAnswer()
	p.w.unload(&p.charge, false)
	p.gather.arrived()
	return true
}

// missing counts the keys that the server did not have.
func (p *part) missing() {
	n := 0
	for _, i := range p.asked {
		if a := &p.gather.asked[i]; a.from == a.to {
			n++
		}
	}
	p.node.Missing(n)
}

// value finds the key a block answers. Values come in the order they were asked for, so
// keys that are passed over have missed; a block for none of the rest is no answer.
func (p *part) value(b []byte) bool {
	for p.next < len(p.asked) {
		a := &p.gather.asked[p.asked[p.next]]
		p.next++
		if a.is(b) {
			a.head = p.w.large && memproto.TellsHead(b)
			a.from = len(p.values)
			p.values = append(p.gather.front.room(p.values, len(b)), b...)
			a.to = len(p.values)
			return true
		}
	}
	return false
}

func (p *part) Failed(_ *backend.Call, f backend.Failure) {
	p.noteAnswer()
	p.w.unload(&p.charge, true)
	switch {
	case p.w.redirects(f):
		p.failed = f
	case !p.w.p.cfg.MissOnFailure:
		p.gather.failed, p.gather.failer = f, p.w
	}
	p.gather.arrived()
}

// Restarted takes back what the lost connection had brought.
func (p *part) Restarted(*backend.Call) {
	for _, i := range p.asked[:p.next] {
		a := &p.gather.asked[i]
		a.from, a.to, a.head = 0, 0, false
	}
	p.next, p.values = 0, p.values[:0]
}
