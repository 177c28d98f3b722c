package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// maxSilence is how long a stream of events may pause. One comes each second, but for the
	// first one of a large placement its shares have to be worked out.
	maxSilence = clientTimeout
	// maxEvent bounds a line of a stream, in bytes.
	maxEvent = 16 << 20
)

var errSilent = errors.New("it has said nothing for too long")

// Follow passes on what a router says about itself, each second and sooner after a change,
// until take returns an error, which it returns, or the router is gone or silent, or the
// context ends: its error is never nil. What take is given belongs to it.
func (c Client) Follow(ctx context.Context, take func(*Event) error) error {
	return c.follow(ctx, maxSilence, take)
}

func (c Client) follow(ctx context.Context, patience time.Duration, take func(*Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	body, err := c.open(ctx, "GET", "/api/v1/events")
	if err != nil {
		return c.silent(ctx, err)
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		silence.Stop() // what take does is not the router's silence
		e := new(Event)
		if err := c.decode(data, e); err != nil {
			return err
		}
		if e.Error != "" {
			return fmt.Errorf("the router at %s says: %s", c.Address, e.Error)
		}
		if err := take(e); err != nil {
			return err
		}
		silence.Reset(patience)
	}
	// A stream that ends within an event has ended, too.
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return c.silent(ctx, fmt.Errorf("cannot follow the router at %s: %w", c.Address, err))
	}
	return fmt.Errorf("the router at %s has ended the stream of events", c.Address)
}

// silent says instead of an error that the router was silent, if that is what is behind it.
func (c Client) silent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("cannot follow the router at %s: %w", c.Address, errSilent)
	}
	return err
}
