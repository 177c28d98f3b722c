//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// screen is the process's terminal while it is drawn on. It is opened once, and closing it,
// which any goroutine may do at any time, brings back what was there.
type screen struct {
	resized chan os.Signal // set by open

	mu     sync.Mutex
	tty    *os.File     // guarded by mu; nil before open and after close
	before unix.Termios // guarded by mu
}

const (
	// Another screen, no cursor, and nothing that is wider than it wraps. It is left empty, as
	// tmux mixes what is on it with the screen from before if the size has changed.
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave = "\x1b[0m\x1b[H\x1b[J\x1b[?7h\x1b[?25h\x1b[?1049l"
	// Lines are cleared one by one, as a whole blank screen would be seen, and before they are
	// written, as after one of the full width the cursor is still on its last column.
	home, clearLine = "\x1b[H", "\x1b[K"
)

// IsTerminal returns the width in columns of the terminal that a file is; ok is false if it is
// none.
func IsTerminal(f *os.File) (width int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}

// open takes the terminal, whatever the standard streams are.
func (s *screen) open() error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0) // package os would not block
	if err != nil {
		return fmt.Errorf("cannot use the terminal (--once needs none): %w", err)
	}
	return s.take(os.NewFile(uintptr(fd), "/dev/tty"))
}

// take begins to draw on a terminal, which it owns from now on.
func (s *screen) take(tty *os.File) error {
	before, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err == nil {
		raw := *before
		// Keys come at once, unseen, and Ctrl-C is one of them: as a signal Ctrl-Z would leave
		// the screen behind. A read ends after a tenth of a second, so that reading can end.
		raw.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
		raw.Iflag &^= unix.IXON | unix.ICRNL
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 1
		err = unix.IoctlSetTermios(int(tty.Fd()), setTermios, &raw)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot set up the terminal: %w", err), tty.Close())
	}
	s.resized = make(chan os.Signal, 1)
	signal.Notify(s.resized, unix.SIGWINCH)
	s.mu.Lock()
	s.tty, s.before = tty, *before
	s.mu.Unlock()
	_, err = tty.WriteString(enter)
	return err
}

// close gives the terminal back as it was. What is drawn later is not seen.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty == nil {
		return
	}
	signal.Stop(s.resized)
	// If these fail the terminal is gone, and there is nobody to tell.
	s.tty.WriteString(leave)
	unix.IoctlSetTermios(int(s.tty.Fd()), setTermios, &s.before)
	s.tty.Close()
	s.tty = nil
}

// draw shows a view as large as the terminal is.
func (s *screen) draw(v *View) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty == nil {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(s.tty.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return fmt.Errorf("cannot draw on the terminal: %w", err)
	}
	width, height := int(size.Col), int(size.Row)
	if width == 0 || height == 0 { // a serial line does not know
		width, height = 80, 24
	}
	frame := home + clearLine + strings.Join(v.Lines(width, height), "\r\n"+clearLine)
	if _, err := s.tty.WriteString(frame); err != nil {
		return fmt.Errorf("cannot draw on the terminal: %w", err)
	}
	return nil
}

// keys sends what somebody asks for until that is to quit, or the context ends,
// or the terminal does.
func (s *screen) keys(ctx context.Context, pressed chan<- key) {
	s.mu.Lock()
	tty := s.tty
	s.mu.Unlock()
	if tty == nil {
		return
	}
	sent := make([]byte, 64)
	for ctx.Err() == nil {
		n, err := tty.Read(sent)
		if err != nil && err != io.EOF { // nothing was pressed for a tenth of a second
			return
		}
		for _, k := range keysIn(string(sent[:n])) {
			select {
			case pressed <- k:
			case <-ctx.Done():
				return
			}
			if k == quit {
				return // what is typed from now on is for the shell
			}
		}
	}
}
