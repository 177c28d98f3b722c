package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
)

// Replay holds the conversation c with the server at addr (host:port, or unix:/path) and returns an error naming the
// first step that went differently, nil when every byte was as written. The server should be empty before.
func Replay(addr string, c Case) error {
	s, err := dial(addr)
	if err != nil {
		return err
	}
	defer s.close()
	for _, step := range c.Steps {
		if err := s.run(step); err != nil {
			return fmt.Errorf("%s.txt:%d: %w", c.Name, step.Line, err)
		}
	}
	if last := c.Steps[len(c.Steps)-1].Op; last == "<eof" {
		return nil
	}
	if err := s.end(); err != nil {
		return fmt.Errorf("%s.txt: after the last step: %w", c.Name, err)
	}
	return nil
}

// end half-closes and checks that the server closes too, without having said more than was asked.
func (s *stream) end() error {
	s.finish() // fails when the case did it already, or the server has closed; both show below
	return s.wantEOF()
}

func (s *stream) run(step Step) error {
	switch step.Op {
	case ">":
		return s.send(step.Bytes)
	case ">fin":
		return s.finish()
	case "<":
		return s.wantBytes(step.Bytes)
	case "<re":
		return s.wantMatch(step)
	case "<eof":
		return s.wantEOF()
	case "=quiet":
		return s.wantQuiet(step.For)
	case "--":
		time.Sleep(step.For) // a pause is part of the conversation, nothing is waited for
		return nil
	}
	return fmt.Errorf("cannot replay %q: record the case first", step.Op)
}

// wantBytes takes exactly the wanted bytes and stops at the first that differs rather than waiting for the rest.
func (s *stream) wantBytes(want string) error {
	got, err := s.take(func(got []byte, ended bool) int {
		n := min(len(got), len(want))
		if n == len(want) || string(got[:n]) != want[:n] {
			return n
		}
		return -1
	})
	if err != nil {
		return fmt.Errorf("want %s: %w", shorten(want), err)
	}
	if got != want {
		return fmt.Errorf("got %s, want %s", shorten(got+s.settle(50*time.Millisecond)), shorten(want))
	}
	return nil
}

func (s *stream) wantMatch(step Step) error {
	_, err := s.take(func(got []byte, ended bool) int {
		if loc := step.Match.FindIndex(got); loc != nil {
			return loc[1]
		}
		return -1
	})
	if err != nil {
		return fmt.Errorf("want a match of %v: %w", step.Match, err)
	}
	return nil
}

func (s *stream) wantEOF() error {
	got, err := s.take(func(got []byte, ended bool) int {
		if ended || len(got) > 0 {
			return len(got)
		}
		return -1
	})
	if err != nil || got != "" {
		return fmt.Errorf("want the end of the stream, got %s, %w", shorten(got), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A server that closes with our bytes unread makes the kernel send a reset, so a reset is a close too.
	if s.err != io.EOF && !errors.Is(s.err, syscall.ECONNRESET) {
		return fmt.Errorf("want the server to close, got %w", s.err)
	}
	return nil
}

func (s *stream) wantQuiet(d time.Duration) error {
	time.Sleep(d) // silence can only be heard by waiting
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) > 0 {
		return fmt.Errorf("want silence for %v, got %s", d, shorten(string(s.got)))
	}
	return nil
}

// Flush empties the server at addr with flush_all.
func Flush(addr string) error {
	_, err := Exchange(addr, "flush_all\r\n", "OK\r\n")
	return err
}

// Release returns the version that the server at addr gives itself, such as 1.6.18.
func Release(addr string) (string, error) {
	reply, err := Exchange(addr, "version\r\n", "\r\n")
	if err != nil {
		return "", err
	}
	release, ok := strings.CutPrefix(strings.TrimSpace(reply), "VERSION ")
	if !ok {
		return "", fmt.Errorf("cannot read the version in %q", reply)
	}
	return release, nil
}

// Holds tells whether variants, of a Case or a Conversation, include what a server of the given release answers.
func Holds(variants, release string) bool { return variants == "" || variants == release }

// Exchange sends request to addr on a connection of its own and returns the reply once it ends with end.
func Exchange(addr, request, end string) (string, error) {
	s, err := dial(addr)
	if err != nil {
		return "", err
	}
	defer s.close()
	if err := s.send(request); err != nil {
		return "", err
	}
	reply, err := s.take(func(got []byte, ended bool) int {
		if bytes.HasSuffix(got, []byte(end)) {
			return len(got)
		}
		return -1
	})
	if err != nil {
		return reply, fmt.Errorf("cannot complete the exchange at %s: %w", addr, err)
	}
	return reply, nil
}
