package coalesce

// Of what is no longer used so much is kept for later.
const (
	keepFlights = 4096
	keepNodes   = 65536
)

func (t *Table[W, C]) take(hash uint64, key []byte) *Flight[W, C] {
	var f *Flight[W, C]
	if n := len(t.freeFlights); n > 0 {
		f = t.freeFlights[n-1]
		t.freeFlights = t.freeFlights[:n-1]
	} else {
		f = new(Flight[W, C])
	}
	f.hash = hash
	f.key = append(f.key[:0], key...)
	return f
}

func (t *Table[W, C]) give(f *Flight[W, C]) {
	if f.late {
		f.older.newer, f.newer.older = f.newer, f.older
		f.older, f.newer, f.late = nil, nil, false
	}
	f.want, f.epoch = 0, 0
	if len(t.freeFlights) < keepFlights {
		t.freeFlights = append(t.freeFlights, f)
	}
}

func (t *Table[W, C]) takeNode() *node[W] {
	n := t.freeNodes
	if n == nil {
		return new(node[W])
	}
	t.freeNodes = n.next
	t.freeCount--
	return n
}

func (t *Table[W, C]) giveNode(n *node[W]) {
	if t.freeCount >= keepNodes {
		return
	}
	*n = node[W]{next: t.freeNodes}
	t.freeNodes = n
	t.freeCount++
}
