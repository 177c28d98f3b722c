package history

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Contract is what a history is held to. The zero value wants all operations on a key to be linearizable.
type Contract struct {
	// Lag is how long after its replacement was acknowledged a value may still be read. If it is not zero, reads are
	// held to it, and all else, gets included, to linearizability.
	Lag time.Duration
	// Loose gives up linearizability of the rest too: then all that return a value are held to Lag.
	Loose bool
	// Overtake lets reads overtake each other that one client has sent without waiting for an answer. They never
	// overtake its writes, nor are overtaken by them.
	Overtake bool
	// Moves says that keys may change their homes, each of which gives tokens of its own: a refused cas tells only that
	// there was a value.
	Moves bool
	// Places says that there may be something where there is no value, as what keeps the place of a missing item: a
	// delete that found something does not tell that there was a value.
	Places bool
	// Limit bounds the search in one piece of a key's history; 0 means a minute. A piece not decided by then counts as
	// a violation.
	Limit time.Duration
}

// Report is the result of a check.
type Report struct {
	Ops        int           // operations looked at
	Steps      int           // those of them that say or change something
	Pieces     int           // judged one by one
	Longest    int           // steps of the longest piece
	Stalest    time.Duration // the most by which a read was found late, allowed or not
	Took       time.Duration
	Broken     int         // parts of the history that break the contract
	Violations []Violation // what is wrong with the first of them to be found, at most maxViolations
}

// maxViolations is how many violations are looked into, which takes time.
const maxViolations = 10

// Violation is a part of a history of one key that breaks the contract.
type Violation struct {
	Key    string
	Reason string
	Ops    []Op // which suffice to see it, in the order of their calls
	piece  *piece
	steps  []step
}

// Check holds a history to a contract. All keys must have been empty before, and all operations on them recorded.
// It works with as many goroutines as there are processors.
func Check(ops []Op, contract Contract) *Report {
	began := time.Now()
	if contract.Limit == 0 {
		contract.Limit = time.Minute
	}
	c := &check{Contract: contract, report: Report{Ops: len(ops)}}
	keys := byKey(ops)
	c.each(len(keys), func(n int) { c.key(keys[n]) })
	c.each(len(c.pieces), func(n int) { c.piece(c.pieces[n]) })
	slices.SortFunc(c.report.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Ops[0].Call, b.Ops[0].Call))
	})
	c.report.Took = time.Since(began)
	return &c.report
}

// byKey returns the operations of each key in the order of their calls.
func byKey(ops []Op) [][]*Op {
	index := make(map[string]int)
	var keys [][]*Op
	for i := range ops {
		op := &ops[i]
		if op.Client >= MaxClients {
			panic(fmt.Sprintf("bug: client %d of at most %d", op.Client, MaxClients))
		}
		n, ok := index[op.Key]
		if !ok {
			n = len(keys)
			index[op.Key] = n
			keys = append(keys, nil)
		}
		keys[n] = append(keys[n], op)
	}
	for _, ops := range keys {
		slices.SortStableFunc(ops, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return keys
}

// check is one run of Check.
type check struct {
	Contract

	mu     sync.Mutex // guards what follows
	pieces []*piece
	report Report
}

// each calls do for 0 to n-1 from as many goroutines as there are processors.
func (c *check) each(n int, do func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// key makes pieces of a key's operations and looks for late reads.
func (c *check) key(ops []*Op) {
	all := steps(ops)
	c.doubt(all)
	exact := all
	if c.Lag > 0 {
		c.late(all)
		exact = slices.DeleteFunc(slices.Clone(all), func(s step) bool { return c.Loose || s.op.Kind == Get })
	}
	pieces := cut(exact)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Steps += len(all)
	for _, p := range pieces {
		if len(p) > 0 {
			c.pieces = append(c.pieces, &piece{p, all, c.Overtake})
			c.report.Longest = max(c.report.Longest, len(p))
			c.report.Pieces++
		}
	}
}

// doubt takes from the steps what they do not tell under this contract.
func (c *check) doubt(all []step) {
	for i := range all {
		s := &all[i]
		if c.Moves && s.need == other {
			s.need = present
		}
		if c.Places && s.op.Kind == Delete {
			s.need = anything
		}
	}
}

// late looks for reads beyond the permitted lag, and adds the worst one to the report.
func (c *check) late(all []step) {
	var worst late
	for _, l := range lags(all) {
		if l.by > worst.by {
			worst = l
		}
	}
	if worst.by > c.Lag && c.broken() {
		reason := fmt.Sprintf("a value was read %v after it had been replaced", worst.by)
		if worst.by == never {
			reason = "a value was read that nobody had written"
		}
		c.violation(reason, &piece{all: all}, worst.steps())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if worst.by != never {
		c.report.Stalest = max(c.report.Stalest, worst.by)
	}
}

// steps are those that show that the read was late.
func (l *late) steps() []step {
	var all []step
	for _, s := range []*step{l.written, l.over, l.read} {
		if s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// piece judges one piece.
func (c *check) piece(p *piece) {
	switch p.judge(p.steps, "", c.Limit) {
	case porcupine.Illegal:
		if !c.broken() {
			return
		}
		few := p.shrink(shrinkLimit)
		c.violation("no order explains these operations", p, withOrigin(few, p.all))
	case porcupine.Unknown:
		c.broken()
		c.violation(fmt.Sprintf("not decided within %v", c.Limit), p, p.steps)
	}
}

// shrinkLimit bounds the search for the smallest violation.
const shrinkLimit = 20 * time.Second

// withOrigin adds to the steps of a violation those before its piece that tell where a value came from, and what had
// replaced it.
func withOrigin(few, all []step) []step {
	for _, l := range lags(all) {
		if slices.ContainsFunc(few, func(s step) bool { return s.op == l.read.op }) {
			for _, s := range l.steps() {
				if !slices.ContainsFunc(few, func(t step) bool { return s.op == t.op }) {
					few = append(few, s)
				}
			}
		}
	}
	return few
}

// broken counts a broken part, and tells whether to look into it.
func (c *check) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Broken++
	return c.report.Broken <= maxViolations
}

func (c *check) violation(reason string, p *piece, steps []step) {
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.op.Call, b.op.Call) })
	v := Violation{Key: steps[0].op.Key, Reason: reason, piece: p, steps: steps}
	for _, s := range steps {
		v.Ops = append(v.Ops, *s.op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Violations = append(c.report.Violations, v)
}
