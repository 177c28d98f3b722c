package epoch

import (
	"sync"
	"sync/atomic"
)

// Table holds the epochs of all keys. It must be made by [New]. All methods may be called
// concurrently, and none but BeganAll and EndedAll takes a lock. Hashes may be any that
// callers place keys by.
//
// A write is on its way from Began, called before it is sent, to Ended, called when the
// server has answered and before the client is. While it is, the old value and the new
// one may both be read, and whoever has read the new one must not see the old one again:
// so nothing that was read before Ended may be kept.
//
// A fill is the router's own store of a copy on another server than the key's home. It
// is on its way from FillBegan to FillEnded, and a write must not remove the copies
// before that: the fill could arrive after the removal. So a write does
//
//	Began; send to the home; answer comes; wait until Fills is false;
//	remove the copies; answers come; Ended; answer the client
//
// and a fill does
//
//	token = Now; read from the home; answer comes; if FillBegan(token) {
//	add the copy; answer comes; FillEnded }
//
// No copy that is older than an answered write is left then. All that is known of a key
// is in one word, whose changes have one order. FillBegan compares the whole word with
// what it has looked at, so at its place in that order no write is on its way, and none
// has begun or ended since the token was taken: the copy is current. A Began comes either
// later in the order, and then that write finds the fill on its way and waits for it; or
// earlier, and then the fill is refused unless the write has also ended, which changes
// the epoch, so that the token is from after it. And between a write's Began and its
// Ended no fill begins: what Fills says falls only, and once false stays so.
//
// A token would be taken for current after 2^32 writes of its word, which take minutes,
// where tokens live for as long as a request.
type Table struct {
	words []atomic.Uint64
	shift uint

	mu      sync.Mutex // guards flushes, and is held while all words are changed
	flushes int        // writes of all keys that are on their way
}

// A word has three numbers: writes on their way in the lowest 24 bits, fills on their way
// in the next 8, writes that have ended in the upper 32, which wrap around.
//
// More writes of a word than fit would need as many clients or pipelined requests, each
// with a buffer, as no router has memory for. Fills beyond 255 are refused.
const (
	oneWrite  = 1
	oneFill   = 1 << 24
	oneEnded  = 1 << 32
	writeBits = oneFill - oneWrite
	fillBits  = oneEnded - oneFill

	defaultSize = 1 << 15
)

// New makes a table of at least n words; 0 means 32,768, which take 256 KiB.
func New(n int) *Table {
	if n <= 0 {
		n = defaultSize
	}
	t := &Table{shift: 64}
	size := 1
	for ; size < n; size *= 2 {
		t.shift--
	}
	t.words = make([]atomic.Uint64, size)
	for i := range t.words {
		t.words[i].Store(oneEnded) // an epoch is not 0
	}
	return t
}

func (t *Table) word(hash uint64) *atomic.Uint64 {
	return &t.words[hash*0x9e3779b97f4a7c15>>t.shift]
}

// epochOf returns the epoch that a word stands for, 0 while a write is on its way. It is
// also 0 for one epoch in 2^32, during which nothing is kept.
func epochOf(word uint64) uint64 {
	if word&writeBits != 0 {
		return 0
	}
	return word &^ fillBits
}

// Now returns a key's epoch: a number that changes with every write, or 0 while a write
// is on its way. Fills do not change it.
func (t *Table) Now(hash uint64) uint64 { return epochOf(t.word(hash).Load()) }

// Began says that a write of a key is about to be sent. The mark is for [Table.Alone].
func (t *Table) Began(hash uint64) (mark uint64) { return t.word(hash).Add(oneWrite) }

// Alone reports, between a write's Began and its Ended, whether no other write of the key
// has been on its way since. What several servers were told by two writes at once may
// have reached them in different orders.
func (t *Table) Alone(hash, mark uint64) bool {
	now := t.word(hash).Load()
	return mark&writeBits == oneWrite && now&^fillBits == mark&^fillBits
}

// Ended says that a write of a key was answered, and is called once for each Began. A
// write whose fate is unknown has not ended while it might still reach the server.
func (t *Table) Ended(hash uint64) { t.word(hash).Add(oneEnded - oneWrite) }

// Passed says that a key was written, by somebody else. It is Began and Ended in one, and
// does nothing about fills that are on their way.
func (t *Table) Passed(hash uint64) { t.word(hash).Add(oneEnded) }

// FillBegan says that a copy of what was read is about to be stored, and reports whether
// it may be. The token is what Now returned before the value was asked for. The copy must
// not be stored if a write was or is on its way, or has ended since; then FillEnded must
// not be called.
func (t *Table) FillBegan(hash, token uint64) bool {
	w := t.word(hash)
	for {
		now := w.Load()
		if token == 0 || epochOf(now) != token || now&fillBits == fillBits {
			return false
		}
		if w.CompareAndSwap(now, now+oneFill) {
			return true
		}
	}
}

// FillEnded says that a fill was answered, and is called once for each FillBegan that
// returned true. A fill whose fate is unknown has not ended while it might still reach
// the server.
func (t *Table) FillEnded(hash uint64) { t.word(hash).Add(^uint64(oneFill - 1)) }

// Fills reports whether fills of a key are on their way. Between a write's Began and
// Ended it changes from true to false only, and need not be asked again once false.
func (t *Table) Fills(hash uint64) bool { return t.word(hash).Load()&fillBits != 0 }
