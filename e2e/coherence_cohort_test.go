package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cacherouter/internal/history"

	"golang.org/x/sync/errgroup"
)

// cohort is a number of callers that work on the same few keys at once. They pause together now and then for one of
// them to set each key, so that the history can be cut there.
type cohort struct {
	rec     *history.Recorder
	callers []*caller
	enough  atomic.Bool  // whether that may be all
	done    atomic.Int64 // operations that were sent

	batches sync.RWMutex // held by each batch, guards what follows
	life    int64        // counts what makes the cas tokens of before worthless, as the start of a server
	moving  bool         // whether keys may be changing their homes
}

const (
	cohortCallers = 16
	cohortDepth   = 6   // requests in a packet, at most
	cohortRound   = 300 // operations of each caller between two pauses
)

// newCohort makes callers that are spread over the routers, each with a random sequence of its own.
func newCohort(routers, keys, counters []string, seed uint64) *cohort {
	h := &cohort{rec: history.NewRecorder()}
	for i := range cohortCallers {
		c := &caller{
			addr: routers[i%len(routers)],
			log:  h.rec.Client(),
			rng:  rand.New(rand.NewPCG(seed, uint64(i))),
		}
		for _, key := range keys {
			c.cells = append(c.cells, &heldCell{key: key})
		}
		for _, key := range counters {
			c.cells = append(c.cells, &heldCell{key: key, counter: true})
		}
		h.callers = append(h.callers, c)
	}
	return h
}

// run sends at least n operations, whatever happens to them, and goes on until it is enough.
func (h *cohort) run(n int64) error {
	defer h.close()
	for h.done.Load() < n || !h.enough.Load() {
		var g errgroup.Group
		for _, c := range h.callers {
			g.Go(func() error { return h.round(c) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := h.settle(h.callers[h.done.Load()%cohortCallers]); err != nil {
			return err
		}
	}
	return nil
}

func (h *cohort) close() {
	for _, c := range h.callers {
		if c.conn != nil {
			c.conn.Close()
		}
	}
}

// round has one caller send its operations.
func (h *cohort) round(c *caller) error {
	for sent := 0; sent < cohortRound; {
		h.connect(c)
		n, err := h.batch(c)
		if err != nil {
			return fmt.Errorf("client %d: %w", c.log.Client(), err)
		}
		sent += n
		h.done.Add(int64(n))
	}
	return nil
}

// batch has a caller send some random requests at once, and returns of how many operations.
func (h *cohort) batch(c *caller) (n int, err error) {
	h.batches.RLock()
	defer h.batches.RUnlock()
	life := h.life
	if h.moving {
		life = unsettled
	}
	c.swap(life)
	for range 1 + c.rng.IntN(cohortDepth) {
		c.random(life)
	}
	for _, a := range c.asks {
		n += len(a.ops)
	}
	return n, c.batch()
}

// unsettled is the life of servers in which tokens are not used: each home of a key counts for itself, and each process
// from the start.
const unsettled = -1

// unsettle keeps cas tokens from being used, and waits until those are answered that are on their way.
func (h *cohort) unsettle() {
	h.batches.Lock()
	defer h.batches.Unlock()
	h.moving = true
}

// settled lets tokens be used that are given from now on.
func (h *cohort) settled() {
	h.batches.Lock()
	defer h.batches.Unlock()
	h.life++
	h.moving = false
}

// connect waits for a connection; a router that was killed needs time to start again.
func (h *cohort) connect(c *caller) {
	for !c.connected() {
		time.Sleep(5 * time.Millisecond) // between two tries, not in place of one
	}
}

// settle sets each key while nobody else does anything.
func (h *cohort) settle(c *caller) error {
	h.connect(c)
	for _, cell := range c.cells {
		c.write(history.Set, cell)
	}
	h.done.Add(int64(len(c.cells)))
	return c.batch()
}

// swap begins the batch with a cas for a token that the last one brought, before it is too old.
func (c *caller) swap(life int64) {
	for _, cell := range c.cells {
		if !c.simple && cell.token != "" && cell.life == life && c.rng.IntN(3) == 0 {
			c.write(history.Cas, cell)
			return
		}
	}
}

// random adds a random request to the batch: for a counter most often a count, for others a read.
func (c *caller) random(life int64) {
	cell := c.cells[c.rng.IntN(len(c.cells))]
	switch {
	case c.rng.IntN(100) < c.reads:
		c.read(history.Get, c.meta(), life, cell)
	case c.simple:
		c.randomSimple(cell, life)
	case cell.counter:
		c.randomCount(cell, life)
	default:
		c.randomValue(cell, life)
	}
}

func (c *caller) randomValue(cell *heldCell, life int64) {
	switch n := c.rng.IntN(100); {
	case n < 30:
		c.read(history.Get, c.meta(), life, cell)
	case n < 40:
		c.several(life)
	case n < 50:
		c.read(history.Gets, c.meta(), life, cell)
	case n < 64:
		c.write(history.Set, cell)
	case n < 71:
		c.write(history.Add, cell)
	case n < 77:
		c.write(history.Append, cell)
	case n < 84:
		c.change(history.Delete, c.meta(), cell, 0)
	case n < 88:
		c.change(history.Touch, c.meta(), cell, 0)
	case cell.token == "" || cell.life != life:
		c.read(history.Gets, c.meta(), life, cell)
	default:
		c.write(history.Cas, cell)
	}
}

func (c *caller) randomCount(cell *heldCell, life int64) {
	switch n := c.rng.IntN(100); {
	case n < 25:
		c.read(history.Get, c.meta(), life, cell)
	case n < 75:
		c.change(history.Incr, c.meta(), cell, (1+c.rng.Int64N(1e12))*int64(1-2*(n%2)))
	case n < 82:
		c.write(history.Set, cell)
	case n < 90:
		c.write(history.Add, cell)
	case n < 95:
		c.change(history.Delete, c.meta(), cell, 0)
	default:
		c.change(history.Touch, c.meta(), cell, 0)
	}
}

func (c *caller) randomSimple(cell *heldCell, life int64) {
	switch n := c.rng.IntN(100); {
	case n < 50:
		c.read(history.Get, false, life, cell)
	case n < 60:
		c.read(history.Gets, false, life, cell)
	case n < 65:
		c.several(life)
	case n < 85:
		c.write(history.Set, cell)
	default:
		c.change(history.Delete, false, cell, 0)
	}
}

// several reads some keys at once.
func (c *caller) several(life int64) {
	var cells []*heldCell
	for _, cell := range c.cells {
		if c.rng.IntN(2) == 0 {
			cells = append(cells, cell)
		}
	}
	if len(cells) > 0 {
		c.read(history.Kind(c.rng.IntN(2)), false, life, cells...) // get or gets
	}
}

// meta chooses the protocol. The simple way is classic.
func (c *caller) meta() bool { return !c.simple && c.rng.IntN(2) == 0 }

// write stores something that nobody else writes. One value in thirty is large enough for a server's other connection.
func (c *caller) write(kind history.Kind, cell *heldCell) {
	if cell.counter {
		n := strconv.FormatInt(1e18+c.rng.Int64N(7e18), 10)
		c.store(kind, c.meta(), cell, n, []byte(n))
		return
	}
	c.pieces++
	name, pad := fmt.Sprintf("%d.%d", c.log.Client(), c.pieces), c.rng.IntN(40)
	if c.rng.IntN(30) == 0 {
		pad = coherenceBulk
	}
	c.store(kind, c.meta(), cell, name, history.AppendPiece(nil, name, pad))
}
