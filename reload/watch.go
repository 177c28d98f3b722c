package reload

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// every is the time between two looks at a file.
const every = time.Second

// Watch reads a file again and again, which is cheap for a configuration and sees what no
// notification tells: a mounted Kubernetes ConfigMap whose links lead elsewhere, a file system of
// another machine, a file that was moved over this one. It has changed when two looks in a row
// have found the same new content: one that is just being written is let be for a moment.
type Watch struct {
	file string
	last digest // as of the last look
	told digest // that the last change was about
}

// digest tells one content of a file from another. That of a file which cannot be read is zero.
type digest [sha256.Size]byte

// NewWatch returns a watch of a file, to which its present content is nothing new.
func NewWatch(file string) *Watch {
	now := digestOf(file)
	return &Watch{file: file, last: now, told: now}
}

// Run calls changed when the file has, one call after the other, until the context ends. While on
// returns false it does not look.
func (w *Watch) Run(ctx context.Context, on func() bool, changed func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if on() && w.look() {
			changed()
		}
	}
}

// look reports whether the file has changed since it last said so.
func (w *Watch) look() bool {
	now := digestOf(w.file)
	again := now == w.last
	w.last = now
	if !again || now == w.told {
		return false
	}
	w.told = now
	return true
}

func digestOf(file string) digest {
	b, err := os.ReadFile(file)
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(b)
}
