package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cacherouter/router"
)

// writeTimeout is how long a pipe may take to take lines.
const writeTimeout = time.Second

// Lines writes sampled records as JSON, one a line. What cannot be written is lost and counted;
// that it cannot, and that it can again, is logged once.
type Lines struct {
	name string // of the file; empty if it is none
	log  *slog.Logger

	mu      sync.Mutex
	file    *os.File // guarded by mu, as is all below
	failing bool
	torn    bool // the last line has no end
	buf     bytes.Buffer
	enc     *json.Encoder

	written, lost atomic.Uint64
}

// Stderr is the name that stands for the standard error.
const Stderr = "stderr"

// OpenLines opens a file, which is made if it is not there, to append lines to it.
func OpenLines(name string, log *slog.Logger) (*Lines, error) {
	l := &Lines{name: name, log: log, file: os.Stderr}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	if name == Stderr {
		l.name = ""
	}
	return l, l.Reopen()
}

// Reopen opens the file anew, for when it was renamed. If that fails, lines go on to the old
// one. Any goroutine may call it.
func (l *Lines) Reopen() error {
	if l.name == "" {
		return nil
	}
	// A pipe that nobody reads is an error, and must not be waited for.
	f, err := os.OpenFile(l.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return fmt.Errorf("cannot open the log of requests: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file
	l.file, l.torn = f, false
	if old != os.Stderr {
		return old.Close()
	}
	return nil
}

// Close closes the file.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == os.Stderr {
		return nil
	}
	return l.file.Close()
}

// Written and Lost return how many lines were written, and were not. Any goroutine may call
// them.
func (l *Lines) Written() uint64 { return l.written.Load() }

// Lost returns how many lines could not be written.
func (l *Lines) Lost() uint64 { return l.lost.Load() }

// Take implements [Sink].
func (l *Lines) Take(records []router.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
	if l.torn {
		l.buf.WriteByte('\n')
	}
	lines := 0
	for i := range records {
		if !records[i].Sampled {
			continue
		}
		if err := l.enc.Encode(EntryOf(&records[i])); err != nil {
			panic("bug: " + err.Error())
		}
		lines++
	}
	if lines > 0 {
		l.write(lines)
	}
}

// write writes the lines at hand.
func (l *Lines) write(lines int) {
	err := l.file.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil && !errors.Is(err, os.ErrNoDeadline) { // only pipes have any
		l.failed(err)
	}
	b := l.buf.Bytes()
	n, err := l.file.Write(b)
	lost := bytes.Count(b[n:], []byte{'\n'})
	if n > 0 || !l.torn {
		l.torn = n > 0 && b[n-1] != '\n'
	}
	l.lost.Add(uint64(min(lost, lines)))
	l.written.Add(uint64(lines - min(lost, lines)))
	switch {
	case err != nil:
		l.failed(err)
	case l.failing:
		l.failing = false
		l.log.Info("the log of requests is written again", "file", l.file.Name())
	}
}

// failed says once that lines cannot be written.
func (l *Lines) failed(err error) {
	if !l.failing {
		l.failing = true
		l.log.Warn("the log of requests cannot be written: lines are lost", "err", err)
	}
}
