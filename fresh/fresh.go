// Package fresh keeps a value that is made from files and made again when one of them
// changes: certificates, passwords, lists. A change that cannot be read leaves the last
// good value in force, and says so.
package fresh

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// pause is how long a look at the files is good for.
const pause = time.Second

// Value is such a value. Any goroutine may use it.
type Value[T any] struct {
	load    func() (T, error)
	files   []string
	log     *slog.Logger
	current atomic.Pointer[T]
	looked  atomic.Int64 // when the files were last looked at, in nanoseconds

	mu     sync.Mutex
	stamps []stamp // guarded by mu: of the files when they were last read
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// New makes the value for the first time, and remembers the files that load reads. The
// logger, which may be nil, is told of changes and of those that could not be read.
func New[T any](log *slog.Logger, load func() (T, error), files ...string) (*Value[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	v := &Value[T]{load: load, files: files, log: log}
	v.stamps = v.look()
	first, err := load()
	if err != nil {
		return nil, err
	}
	v.current.Store(&first)
	v.looked.Store(time.Now().UnixNano())
	return v, nil
}

// Get returns the value as of at most a second ago.
func (v *Value[T]) Get() T {
	now, looked := time.Now().UnixNano(), v.looked.Load()
	if now-looked >= int64(pause) && v.looked.CompareAndSwap(looked, now) {
		v.refresh()
	}
	return *v.current.Load()
}

// refresh makes the value again if a file has changed.
func (v *Value[T]) refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	stamps := v.look()
	changed := false
	for i := range stamps {
		changed = changed || stamps[i] != v.stamps[i]
	}
	if !changed {
		return
	}
	v.stamps = stamps
	next, err := v.load()
	if err != nil {
		v.log.Error("changed file refused, the last good one stays in force", "files", fmt.Sprint(v.files), "err", err)
		return
	}
	v.current.Store(&next)
	v.log.Info("file read again", "files", fmt.Sprint(v.files))
}

// look returns the state of every file; one that is missing has the zero state.
func (v *Value[T]) look() []stamp {
	stamps := make([]stamp, len(v.files))
	for i, f := range v.files {
		if fi, err := os.Stat(f); err == nil {
			stamps[i] = stamp{fi.ModTime(), fi.Size()}
		}
	}
	return stamps
}
