package client

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"time"

	"cacherouter/router"
)

// What an operation can come to, beside an answer.
var (
	// ErrMiss: there is no such item.
	ErrMiss = errors.New("no such item")
	// ErrNotStored: the item is there already, for Add, or is not there, for Replace.
	ErrNotStored = errors.New("not stored")
	// ErrConflict: the item is not the one that was read any more.
	ErrConflict = errors.New("the item has changed")
	// ErrKey: the key is empty, or too long, in base64 if it must be sent so.
	ErrKey = errors.New("a key has 1 to 250 bytes on the wire")
	// ErrClosed: the client is closed, or its router has ended.
	ErrClosed = errors.New("the client is closed")
)

// ServerError is what a server, or the router in its place, says was wrong: that it could not be
// reached, for example. What a write with this error does is not known.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// Item is a key with its value.
type Item struct {
	Key   string
	Value []byte
	Flags uint32
	// TTL is how long the item lives, in whole seconds, rounded up; 0 means for ever. Get
	// does not fill it in.
	TTL time.Duration
	// token says which state of the item was read.
	token uint64
}

// Config says how a client works. The zero value stands for the defaults.
type Config struct {
	// InFlight is how many operations may be under way on each loop of the router at a
	// time; 0 means 512. Others wait for their turn.
	InFlight int
}

// Client is used by any number of goroutines.
type Client struct {
	lines []*line // by loop
	seed  maphash.Seed
}

// New returns a client of a router, which must run, and must outlive the client.
func New(r *router.Router, c Config) *Client {
	if c.InFlight <= 0 {
		c.InFlight = 512
	}
	cl := &Client{seed: maphash.MakeSeed()}
	for i := range r.Loops() {
		cl.lines = append(cl.lines, newLine(r, i, c.InFlight))
	}
	return cl
}

// Close ends the client. Operations that are under way are still answered.
func (c *Client) Close() {
	for _, l := range c.lines {
		l.close()
	}
}

// lineFor returns the line for a key: always the same, so that gets of one key can share a
// request.
func (c *Client) lineFor(key string) *line {
	return c.lines[maphash.String(c.seed, key)%uint64(len(c.lines))]
}

// Get returns an item, or ErrMiss.
func (c *Client) Get(ctx context.Context, key string) (Item, error) {
	it := Item{Key: key}
	r, err := c.do(ctx, key, "mg", nil, "v f c")
	if err != nil {
		return Item{}, err
	}
	return it, r.item(&it)
}

// GetMany returns those of the items that are there. All are asked for at once. With an error it
// returns what could be had.
func (c *Client) GetMany(ctx context.Context, keys ...string) (map[string]Item, error) {
	calls := make([]*call, len(keys))
	var errs []error
	for i, key := range keys {
		var err error
		if calls[i], err = c.send(ctx, key, "mg", nil, "v f c"); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", key, err))
		}
	}
	all := make(map[string]Item, len(keys))
	for i, key := range keys {
		if calls[i] == nil {
			continue
		}
		it := Item{Key: key}
		r, err := calls[i].wait(ctx)
		if err == nil {
			err = r.item(&it)
		}
		switch {
		case err == nil:
			all[key] = it
		case !errors.Is(err, ErrMiss):
			errs = append(errs, fmt.Errorf("%q: %w", key, err))
		}
	}
	return all, errors.Join(errs...)
}

// Set stores an item.
func (c *Client) Set(ctx context.Context, it Item) error { return c.store(ctx, it, "MS") }

// Add stores an item that is not there yet; else it returns ErrNotStored.
func (c *Client) Add(ctx context.Context, it Item) error { return c.store(ctx, it, "ME") }

// Replace stores an item that is there; else it returns ErrNotStored.
func (c *Client) Replace(ctx context.Context, it Item) error { return c.store(ctx, it, "MR") }

// CompareAndSwap stores an item that Get has returned, with another value, if nobody has changed
// it since; else it returns ErrConflict, or ErrMiss if it is gone.
func (c *Client) CompareAndSwap(ctx context.Context, it Item) error {
	return c.store(ctx, it, "C"+strconv.FormatUint(it.token, 10))
}

func (c *Client) store(ctx context.Context, it Item, mode string) error {
	flags := fmt.Sprintf("T%d F%d %s", seconds(it.TTL), it.Flags, mode)
	return c.change(ctx, it.Key, "ms", it.bytes(), flags)
}

// bytes returns the value, which is not nil.
func (it *Item) bytes() []byte {
	if it.Value == nil {
		return []byte{}
	}
	return it.Value
}

// Delete removes an item, or returns ErrMiss.
func (c *Client) Delete(ctx context.Context, key string) error {
	return c.change(ctx, key, "md", nil, "")
}

// Touch sets how long an item lives from now on, or returns ErrMiss.
func (c *Client) Touch(ctx context.Context, key string, ttl time.Duration) error {
	return c.change(ctx, key, "mg", nil, fmt.Sprintf("T%d", seconds(ttl)))
}

// Add64 adds to the number that an item is, in decimal, and returns the sum; with a negative
// delta it subtracts, down to 0. A missing item is ErrMiss.
func (c *Client) Add64(ctx context.Context, key string, delta int64) (uint64, error) {
	mode, n := "MI", uint64(delta)
	if delta < 0 {
		mode, n = "MD", -uint64(delta)
	}
	r, err := c.do(ctx, key, "ma", nil, fmt.Sprintf("v D%d %s", n, mode))
	if err != nil {
		return 0, err
	}
	return r.number()
}

// seconds rounds up; memcached takes more than 30 days for a date.
func seconds(ttl time.Duration) int64 {
	const month = 30 * 24 * 60 * 60
	s := int64((ttl + time.Second - 1) / time.Second)
	if s > month {
		s += time.Now().Unix()
	}
	return s
}

// change does what has no answer but that it was done.
func (c *Client) change(ctx context.Context, key, verb string, value []byte, flags string) error {
	r, err := c.do(ctx, key, verb, value, flags)
	if err != nil {
		return err
	}
	return r.done()
}

// do sends a request and waits for the reply.
func (c *Client) do(ctx context.Context, key, verb string, value []byte, flags string) (reply, error) {
	call, err := c.send(ctx, key, verb, value, flags)
	if err != nil {
		return reply{}, err
	}
	return call.wait(ctx)
}

func (c *Client) send(ctx context.Context, key, verb string, value []byte, flags string) (*call, error) {
	if n := wireLen(key); n == 0 || n > maxKey {
		return nil, fmt.Errorf("%w: it has %d", ErrKey, n)
	}
	return c.lineFor(key).send(ctx, key, verb, value, flags)
}
