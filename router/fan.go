package router

import (
	"slices"

	"cacherouter/backend"
	"cacherouter/memproto"
)

// fan is a request that goes to every server. It bears no company: its client is read
// again when it is over. There are few, so they are not reused.
type fan struct {
	request *request
	workers []*worker // of the pools that there were when it began
	parts   []*fanPart
	left    int
	merge   func(*fan) // calls finish
	// snapshots are those of all loops, if they were asked.
	snapshots []Snapshot
}

// fanPart is one server's share of a fan.
type fanPart struct {
	fan    *fan
	w      *worker // of the server's pool
	node   *node
	call   backend.Call
	reply  []byte
	failed backend.Failure // 0 if it did not
}

// startFan begins a request to every server of all pools that answers, which ask sends.
func (s *session) startFan(r *memproto.Request) *fan {
	s.alone = true
	f := &fan{request: s.push(r), workers: s.front.workers}
	f.request.way = Several
	for _, w := range f.workers {
		for _, n := range w.nodes {
			if n.use.answers() {
				f.parts = append(f.parts, &fanPart{fan: f, w: w, node: n})
			}
		}
	}
	return f
}

// begin keeps the fan from ending while some are not yet asked, as those that are may
// answer at once; an arrived follows when all are.
func (f *fan) begin() { f.left++ }

// ask sends a line to every server, once to one that is in several pools.
func (f *fan) ask(line []byte) {
	asked := make(map[string]bool, len(f.parts))
	f.parts = slices.DeleteFunc(f.parts, func(p *fanPart) bool {
		again := asked[p.node.use.Address]
		asked[p.node.use.Address] = true
		return again
	})
	for _, p := range f.parts {
		p.send(line)
	}
}

func (p *fanPart) send(line []byte) {
	f := p.fan
	f.left++
	p.call = backend.Call{Owner: p, Verb: f.request.verb, Repeatable: f.request.verb.Repeatable()}
	p.node.Send(&p.call, backend.Small, line)
}

// askLoops collects a snapshot of every loop, each taken on its own goroutine.
func (f *fan) askLoops(take func(*front) Snapshot) {
	own := f.request.w.front
	for _, w := range own.r.fronts {
		if w == own {
			f.snapshots = append(f.snapshots, take(w))
			continue
		}
		f.left++
		if !w.loop.Post(func() {
			snap := take(w)
			own.loop.Post(func() {
				f.snapshots = append(f.snapshots, snap)
				f.arrived()
			})
		}) {
			f.arrived()
		}
	}
}

// arrived counts one part less to wait for.
func (f *fan) arrived() {
	f.left--
	if f.left == 0 {
		f.merge(f)
	}
}

// finish answers the client and reads it again.
func (f *fan) finish(b []byte) {
	if s := f.request.session; s != nil {
		s.alone = false
	}
	f.request.finish(b)
}

func (p *fanPart) Replied(_ *backend.Call, u memproto.Unit, b []byte) bool {
	p.reply = append(p.reply, b...)
	if u.Last {
		p.fan.arrived()
	}
	return true
}

func (p *fanPart) Failed(_ *backend.Call, f backend.Failure) {
	p.failed = f
	p.fan.arrived()
}

func (p *fanPart) Restarted(*backend.Call) { p.reply = p.reply[:0] }
