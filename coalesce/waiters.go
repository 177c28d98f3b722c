package coalesce

import "time"

// node is one get that waits for a flight.
type node[W any] struct {
	next     *node[W]
	who      W
	deadline time.Duration
	tries    uint8 // flights that failed under it
}

// list is the waiters of a flight, in the order they came.
type list[W any] struct {
	head, tail *node[W]
	n          int
}

func (l *list[W]) push(n *node[W]) {
	n.next = nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.n++
}

func (l *list[W]) pop() *node[W] {
	n := l.head
	if n == nil {
		return nil
	}
	l.head = n.next
	if l.head == nil {
		l.tail = nil
	}
	l.n--
	return n
}

// prepend moves all of m before those in l.
func (l *list[W]) prepend(m *list[W]) {
	if m.n == 0 {
		return
	}
	m.tail.next = l.head
	l.head = m.head
	if l.tail == nil {
		l.tail = m.tail
	}
	l.n += m.n
	*m = list[W]{}
}

// survivors takes out those that may try once more.
func (l *list[W]) survivors(now time.Duration, maxTries uint8) (alive list[W]) {
	var over list[W]
	for n := l.pop(); n != nil; n = l.pop() {
		n.tries++
		if n.tries < maxTries && n.deadline > now {
			alive.push(n)
		} else {
			over.push(n)
		}
	}
	*l = over
	return alive
}
