// Package accesslog writes down what became of single requests: sampled ones as lines of JSON,
// slow ones in the log and in memory. It has a goroutine of its own and takes records through
// a queue of a fixed size: when it cannot follow, records are lost and counted, and no loop
// waits.
package accesslog

import (
	"context"
	"sync/atomic"
	"time"

	"cacherouter/router"
)

const (
	// queued is how many records may wait, and batch how many are taken at a time.
	queued, batch = 8192, 512
	// every is how often it is looked for records: nobody is woken for one, as that would cost
	// the loop more than the record.
	every = 20 * time.Millisecond
)

// Sink takes records. The slice is valid during the call.
type Sink interface{ Take(records []router.Record) }

// Queue is between the loops and those who take their time.
type Queue struct {
	waiting chan router.Record
	lost    atomic.Uint64
	sinks   []Sink
	taken   []router.Record
}

// NewQueue returns a queue that [Queue.Run] empties into sinks.
func NewQueue(sinks ...Sink) *Queue {
	return &Queue{waiting: make(chan router.Record, queued), sinks: sinks, taken: make([]router.Record, 0, batch)}
}

// Put puts a record into the queue, or counts it as lost if that is full. It does not wait, and
// any goroutine may call it.
func (q *Queue) Put(r *router.Record) {
	select {
	case q.waiting <- *r:
	default:
		q.lost.Add(1)
	}
}

// Lost returns how many records found the queue full. Any goroutine may call it.
func (q *Queue) Lost() uint64 { return q.lost.Load() }

// Run gives records to the sinks until ctx ends, those that wait then included.
func (q *Queue) Run(ctx context.Context) {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			q.empty()
			return
		case <-look.C:
			q.empty()
		}
	}
}

// empty gives all that wait to the sinks.
func (q *Queue) empty() {
	for q.take() {
		for _, s := range q.sinks {
			s.Take(q.taken)
		}
		clear(q.taken) // keys and addresses are not kept
	}
}

// take takes the next batch, and reports whether there is any.
func (q *Queue) take() bool {
	q.taken = q.taken[:0]
	for len(q.taken) < batch {
		select {
		case r := <-q.waiting:
			q.taken = append(q.taken, r)
			continue
		default:
		}
		break
	}
	return len(q.taken) > 0
}
