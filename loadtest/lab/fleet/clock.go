package fleet

import "time"

// clock is what will happen, and when. Of two events at one time the one that was set first comes
// first.
type clock struct {
	now   time.Duration
	heap  []event
	count uint64
}

type event struct {
	at  time.Duration
	seq uint64
	do  *call
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// set makes a call happen at a time.
func (c *clock) set(at time.Duration, do *call) {
	c.count++
	c.heap = append(c.heap, event{at, c.count, do})
	i := len(c.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if c.heap[up].before(&c.heap[i]) {
			break
		}
		c.heap[up], c.heap[i] = c.heap[i], c.heap[up]
		i = up
	}
}

// next takes the first event up to a time, and lets the time pass until then. It returns nil when
// there is none.
func (c *clock) next(until time.Duration) *call {
	if len(c.heap) == 0 || c.heap[0].at > until {
		c.now = until
		return nil
	}
	first := c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap = c.heap[:last]
	c.sink()
	c.now = first.at
	return first.do
}

func (c *clock) sink() {
	i := 0
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if c.heap[child].before(&c.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
}
