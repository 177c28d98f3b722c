package hotkey

import "sync/atomic"

// Epochs tell whether a key was written through this router. They are shared by all
// loops; keys share them by hash, so a write also looks like one of some other keys. All
// methods may be called concurrently.
//
// A write is on its way from Began, called before it is sent, to Ended, called when the
// server has answered and before the client is. While it is, the old value and the new
// one may both be read, and whoever has read the new one must not see the old one again:
// so nothing that was read before Ended may be kept.
type Epochs struct {
	// words hold in the low half how many writes are on their way and above how many have
	// ended.
	words []atomic.Uint64
	shift uint
}

const (
	defaultEpochs = 1 << 15 // 256 KiB
	oneEnded      = 1 << 32
	busyBits      = oneEnded - 1
)

// NewEpochs makes at least n epochs; 0 means 32,768, which take 256 KiB.
func NewEpochs(n int) *Epochs {
	if n <= 0 {
		n = defaultEpochs
	}
	e := &Epochs{shift: 64}
	size := 1
	for ; size < n; size *= 2 {
		e.shift--
	}
	e.words = make([]atomic.Uint64, size)
	for i := range e.words {
		e.words[i].Store(oneEnded) // an epoch is not 0
	}
	return e
}

func (e *Epochs) word(hash uint64) *atomic.Uint64 {
	return &e.words[hash*0x9e3779b97f4a7c15>>e.shift]
}

// Now returns a number that changes with every write of a key, or 0 while one is on its
// way.
func (e *Epochs) Now(hash uint64) uint64 {
	w := e.word(hash).Load()
	if w&busyBits != 0 {
		return 0
	}
	return w
}

// Began says that a write of a key is about to be sent.
func (e *Epochs) Began(hash uint64) { e.word(hash).Add(1) }

// Ended says that a write of a key was answered, and is called once for each Began. A
// write whose fate is unknown has not ended while it might still reach the server.
func (e *Epochs) Ended(hash uint64) { e.word(hash).Add(oneEnded - 1) }

// Passed says that a key was written, by somebody else. It is Began and Ended in one.
func (e *Epochs) Passed(hash uint64) { e.word(hash).Add(oneEnded) }
