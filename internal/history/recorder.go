package history

import "time"

// Recorder collects the operations of the clients of one run. All times are since its making, on the monotonic clock
// of this process, so that those of different clients can be compared.
type Recorder struct {
	start time.Time
	logs  []*Log
}

// NewRecorder starts the clock.
func NewRecorder() *Recorder { return &Recorder{start: time.Now()} }

// Start returns when the clock was started.
func (r *Recorder) Start() time.Time { return r.start }

// Now returns the time on the recorder's clock. It may be called concurrently.
func (r *Recorder) Now() time.Duration { return time.Since(r.start) }

// Client returns the log of a further client. It must not be called concurrently.
func (r *Recorder) Client() *Log {
	l := &Log{client: len(r.logs), start: r.start}
	r.logs = append(r.logs, l)
	return l
}

// Ops returns all operations of all clients, each client's in the order of their calls. No client may be running.
func (r *Recorder) Ops() []Op {
	var all []Op
	for _, l := range r.logs {
		all = append(all, l.ops...)
	}
	return all
}

// Log records the operations of one client, which alone may use it.
type Log struct {
	client int
	start  time.Time
	ops    []Op
}

// Client returns the client's number.
func (l *Log) Client() int { return l.client }

// Call records that op is about to be sent, and returns the number by which its return is recorded. It has to be
// called before the first byte of the request is on its way.
func (l *Log) Call(op Op) int {
	op.Client, op.Outcome, op.Call = l.client, Unknown, time.Since(l.start)
	l.ops = append(l.ops, op)
	return len(l.ops) - 1
}

// Token records the token that came with the answer to a gets, which has to be recorded as well.
func (l *Log) Token(n int, token string) { l.ops[n].Token = token }

// Return records the answer to an operation, with the value that it brought, if any. Without it, an operation stays
// Unknown.
func (l *Log) Return(n int, outcome Outcome, value string) {
	op := &l.ops[n]
	op.Outcome, op.Return = outcome, time.Since(l.start)
	if value != "" {
		op.Value = value
	}
}
