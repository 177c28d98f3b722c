//go:build !unix

package handoff

import (
	"errors"
	"os/exec"
)

// Link is the connection between two processes, which there is on Unix only.
type Link struct{}

// Send fails.
func (l *Link) Send(Message) error { return errors.ErrUnsupported }

// Receive fails.
func (l *Link) Receive() (Message, error) { return Message{}, errors.ErrUnsupported }

// CloseSending fails.
func (l *Link) CloseSending() error { return errors.ErrUnsupported }

// Close fails.
func (l *Link) Close() error { return errors.ErrUnsupported }

// Start fails.
func Start(string, []string) (*exec.Cmd, *Link, error) { return nil, nil, errors.ErrUnsupported }

// Predecessor returns nil.
func Predecessor() (*Link, error) { return nil, nil }
