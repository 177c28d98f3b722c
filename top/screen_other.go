//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package top

import (
	"context"
	"errors"
	"os"
)

// screen cannot be had here.
type screen struct{ resized chan os.Signal }

// IsTerminal reports that a file is no terminal that can be drawn on.
func IsTerminal(*os.File) (width int, ok bool) { return 0, false }

func (s *screen) open() error {
	return errors.New("terminals of this system are not supported: use --once")
}
func (s *screen) close()                           {}
func (s *screen) draw(*View) error                 { return nil }
func (s *screen) keys(context.Context, chan<- key) {}
