package rendezvous

import (
	"fmt"
	"slices"
)

// With returns the placement with one more server, whose index is the number of those before. Only the slots it wins are computed anew.
// The receiver does not change. It returns an error for a name already there, an empty one, or a weight out of range.
func (t *Table) With(name string, weight int) (*Table, error) {
	if name == "" || slices.Contains(t.names, name) {
		return nil, fmt.Errorf("cannot add server %q to rendezvous table: the name is empty or already there", name)
	}
	if err := checkWeight(name, weight); err != nil {
		return nil, fmt.Errorf("cannot add to rendezvous table: %w", err)
	}
	if len(t.names) == min(t.slots, maxServers) {
		return nil, fmt.Errorf("cannot add server %q to rendezvous table: %d servers are the most it holds", name, len(t.names))
	}
	next := t.clone()
	next.append(name, weight)
	if err := next.finish(); err != nil {
		return nil, err
	}
	next.change(t, next.addTo(len(t.seeds)))
	return next, nil
}

// Without returns the placement without the named server; the indexes after its own go down by one. Only the slots that listed it are
// computed anew. The receiver does not change. It returns an error for a name that is not there, or the last server.
func (t *Table) Without(name string) (*Table, error) {
	id := t.find(name)
	if id < 0 {
		return nil, fmt.Errorf("cannot remove server %q from rendezvous table: no such server", name)
	}
	if len(t.names) == 1 {
		return nil, fmt.Errorf("cannot remove server %q from rendezvous table: it is the last", name)
	}
	next := t.clone()
	next.remove(id)
	if err := next.finish(); err != nil {
		return nil, err
	}
	next.change(t, next.removeFrom(id))
	return next, nil
}

// Reweight returns the placement with another weight for the named server. Only the slots that it wins, or in which it loses a place, are
// computed anew. The receiver does not change. It returns an error for a name that is not there, or a weight out of range.
func (t *Table) Reweight(name string, weight int) (*Table, error) {
	id := t.find(name)
	if id < 0 {
		return nil, fmt.Errorf("cannot reweight server %q of rendezvous table: no such server", name)
	}
	if err := checkWeight(name, weight); err != nil {
		return nil, fmt.Errorf("cannot reweight in rendezvous table: %w", err)
	}
	next := t.clone()
	gains := weight > next.weights[next.index[id]]
	next.weights[next.index[id]] = weight
	next.rates[id] = rate(weight)
	if err := next.finish(); err != nil {
		return nil, err
	}
	next.change(t, next.reweighIn(id, gains))
	return next, nil
}

// change makes the rows of t, those that the placement before has drawn by revise.
func (t *Table) change(before *Table, revise func(slot uint64, r row) row) {
	switch {
	case t.direct || len(t.seeds) <= DirectLimit:
		return
	case before.rows == nil:
		t.rows = make([]row, t.slots)
		return
	}
	t.rows = make([]row, t.slots)
	t.eachRange(func(from, to int) {
		for slot := from; slot < to; slot++ {
			if r := before.drawn(uint64(slot)); r != notDrawn {
				t.rows[slot] = revise(uint64(slot), r)
			}
		}
	})
}

// addTo returns how a row that does not list a server changes when it arrives or gains: it enters if it beats the last.
func (t *Table) addTo(id int) func(uint64, row) row {
	return func(slot uint64, r row) row {
		key := slotKey(slot)
		b := t.bid(key, id)
		if last := r.at(depth - 1); last != unused && !b.beats(t.bid(key, last)) {
			return r
		}
		return t.enter(key, r, depth-1, b)
	}
}

// removeFrom returns how a row changes when a server leaves: the others move up, and the best of the rest comes last. The server with the
// highest identifier has taken over that of the one which left.
func (t *Table) removeFrom(id int) func(uint64, row) row {
	renamed := len(t.seeds)
	return func(slot uint64, r row) row {
		listed := r.lists(id)
		if !listed && !r.lists(renamed) {
			return r
		}
		if listed {
			r = r.without(id)
		}
		for i := range depth {
			if r.at(i) == renamed {
				r = r.with(i, id)
			}
		}
		if listed && len(t.seeds) >= depth {
			key := slotKey(slot)
			r = r.with(depth-1, t.following(key, t.bid(key, r.at(depth-2))).id)
		}
		return r
	}
}

// reweighIn returns how a row changes with a server's weight. If it falls behind all others of the row, one outside may be better.
func (t *Table) reweighIn(id int, gains bool) func(uint64, row) row {
	add := t.addTo(id)
	return func(slot uint64, r row) row {
		switch {
		case r.lists(id):
		case gains:
			return add(slot, r)
		default:
			return r
		}
		r = r.without(id)
		key := slotKey(slot)
		b := t.bid(key, id)
		if len(t.seeds) > depth && !b.beats(t.bid(key, r.at(depth-2))) {
			return t.ranked(key)
		}
		return t.enter(key, r, min(len(t.seeds), depth)-1, b)
	}
}

// enter inserts b before the servers it beats, the last of which is at most at place i and drops out if it is the row's last.
func (t *Table) enter(key uint64, r row, i int, b bid) row {
	for ; i > 0 && (r.at(i-1) == unused || b.beats(t.bid(key, r.at(i-1)))); i-- {
		r = r.with(i, r.at(i-1))
	}
	return r.with(i, b.id)
}

// find returns the identifier of a server, or -1.
func (t *Table) find(name string) int {
	return slices.IndexFunc(t.index, func(i int) bool { return t.names[i] == name })
}

// clone copies everything but the rows.
func (t *Table) clone() *Table {
	next := *t
	next.names, next.weights = slices.Clone(t.names), slices.Clone(t.weights)
	next.index, next.seeds, next.rates = slices.Clone(t.index), slices.Clone(t.seeds), slices.Clone(t.rates)
	next.rows = nil
	return &next
}

// remove takes a server out of the lists and gives its identifier to the last.
func (t *Table) remove(id int) {
	gone, last := t.index[id], len(t.seeds)-1
	t.names, t.weights = slices.Delete(t.names, gone, gone+1), slices.Delete(t.weights, gone, gone+1)
	t.index[id], t.seeds[id], t.rates[id] = t.index[last], t.seeds[last], t.rates[last]
	t.index, t.seeds, t.rates = t.index[:last], t.seeds[:last], t.rates[:last]
	for i := range t.index {
		if t.index[i] > gone {
			t.index[i]--
		}
	}
}
