package coalesce

import "time"

// Of what is no longer used so much is kept for later.
const (
	keepFlights = 4096
	keepNodes   = 65536
)

// take returns a flight of the table's own, with a copy of the key.
func (t *Table[W]) take(hash uint64, key []byte) *Flight[W] {
	var f *Flight[W]
	if n := len(t.freeFlights); n > 0 {
		f = t.freeFlights[n-1]
		t.freeFlights = t.freeFlights[:n-1]
	} else {
		f = new(Flight[W])
	}
	f.hash = hash
	f.key = append(f.key[:0], key...)
	t.watch(f)
	return f
}

// give takes back a flight that take has returned.
func (t *Table[W]) give(f *Flight[W]) {
	f.older.newer, f.newer.older = f.newer, f.older
	*f = Flight[W]{key: f.key[:0]}
	if len(t.freeFlights) < keepFlights {
		t.freeFlights = append(t.freeFlights, f)
	}
}

// node returns a node for a get.
func (t *Table[W]) node(who W, deadline time.Duration) *node[W] {
	n := t.freeNodes
	if n == nil {
		n = new(node[W])
	} else {
		t.freeNodes = n.next
		t.freeCount--
	}
	n.who, n.deadline = who, deadline
	return n
}

func (t *Table[W]) giveNode(n *node[W]) {
	if t.freeCount >= keepNodes {
		return
	}
	*n = node[W]{next: t.freeNodes}
	t.freeNodes = n
	t.freeCount++
}
