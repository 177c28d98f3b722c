package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// client is a plain text-protocol connection that trusts nothing: what is no well-formed reply is an error.
type client struct {
	conn net.Conn
	r    *bufio.Reader
}

// serverError is a reply that says that the request failed and leaves the connection in step.
type serverError string

func (e serverError) Error() string { return string(e) }

// failed tells a request that failed in good order from a broken or wrong reply.
func failed(err error) bool {
	var e serverError
	return errors.As(err, &e)
}

// connect opens a connection to addr, host:port or unix:/path, that the test closes at its end.
func connect(tb testing.TB, addr string) *client {
	tb.Helper()
	conn, err := memcachedtest.Dial(addr, patience)
	if err != nil {
		tb.Fatalf("cannot connect: %v", err)
	}
	tb.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(4 * patience))
	return &client{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

func (c *client) send(request string) error {
	_, err := io.WriteString(c.conn, request)
	return err
}

func (c *client) line() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return line, fmt.Errorf("cannot read a reply line (so far %q): %w", line, err)
	}
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok {
		return line, fmt.Errorf("the line %q does not end in CRLF", line)
	}
	if strings.HasPrefix(line, "SERVER_ERROR ") {
		return "", serverError(line)
	}
	return line, nil
}

// do sends a request whose reply is one line and returns that.
func (c *client) do(request string) (string, error) {
	if err := c.send(request); err != nil {
		return "", err
	}
	return c.line()
}

// set stores a value; anything but STORED is an error.
func (c *client) set(key, value string) error {
	reply, err := c.do(fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value))
	if err == nil && reply != "STORED" {
		err = fmt.Errorf("set %s: reply %q", key, reply)
	}
	return err
}

// get returns the values of the keys that are there.
func (c *client) get(keys ...string) (map[string]string, error) {
	if err := c.send("get " + strings.Join(keys, " ") + "\r\n"); err != nil {
		return nil, err
	}
	return c.values()
}

// values reads one reply to a get.
func (c *client) values() (map[string]string, error) {
	values := make(map[string]string)
	for {
		line, err := c.line()
		if err != nil || line == "END" {
			return values, err
		}
		key, value, err := c.value(line)
		if err != nil {
			return values, err
		}
		values[key] = value
	}
}

func (c *client) value(line string) (key, value string, err error) {
	words := strings.Split(line, " ")
	if len(words) != 4 || words[0] != "VALUE" {
		return "", "", fmt.Errorf("%q is no line of a get's reply", line)
	}
	n, err := strconv.Atoi(words[3])
	if err != nil || n < 0 {
		return "", "", fmt.Errorf("%q has no length", line)
	}
	block := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(c.r, block); err != nil {
		return "", "", fmt.Errorf("cannot read the value of %s: %w", words[1], err)
	}
	if string(block[n:]) != "\r\n" {
		return "", "", fmt.Errorf("the value of %s ends in %q", words[1], block[n:])
	}
	return words[1], string(block[:n]), nil
}

// mustSet and mustGet are for times when nothing is broken.
func (c *client) mustSet(tb testing.TB, key, value string) {
	tb.Helper()
	if err := c.set(key, value); err != nil {
		tb.Fatalf("cannot set %s: %v", key, err)
	}
}

func (c *client) mustGet(tb testing.TB, key, want string) {
	tb.Helper()
	values, err := c.get(key)
	if err != nil {
		tb.Fatalf("cannot get %s: %v", key, err)
	}
	if got, hit := values[key]; !hit || got != want {
		tb.Fatalf("%s is %.100q (hit: %v), want %.100q", key, got, hit, want)
	}
}

// mustMiss gets a key that must not be there.
func (c *client) mustMiss(tb testing.TB, key string) {
	tb.Helper()
	if values, err := c.get(key); err != nil || len(values) != 0 {
		tb.Fatalf("get %s gives %v, %v; want a miss", key, values, err)
	}
}

// silent fails the test if the router has said anything that was not read yet.
func (c *client) silent(tb testing.TB) {
	tb.Helper()
	c.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if b, err := c.r.Peek(1); err == nil {
		tb.Fatalf("the reply begins already, with %q", b)
	}
	c.conn.SetReadDeadline(time.Now().Add(4 * patience))
}

// homes tells at which of the backends each key lives, by asking them. All keys must have been stored.
func homes(tb testing.TB, backends []string, keys []string) map[string]int {
	tb.Helper()
	at := make(map[string]int)
	for i, addr := range backends {
		found, err := connect(tb, addr).get(keys...)
		if err != nil {
			tb.Fatalf("cannot ask %s for its keys: %v", addr, err)
		}
		for key := range found {
			if other, twice := at[key]; twice {
				tb.Fatalf("%s lives at %d and at %d", key, other, i)
			}
			at[key] = i
		}
	}
	if len(at) != len(keys) {
		tb.Fatalf("%d of %d keys are at home", len(at), len(keys))
	}
	return at
}

// spread stores n keys, each with its name in its value, and returns those that live at each backend.
func spread(tb testing.TB, c *client, backends []string, n int) [][]string {
	tb.Helper()
	var keys []string
	for i := range n {
		key := fmt.Sprintf("spread:%d", i)
		c.mustSet(tb, key, "value of "+key)
		keys = append(keys, key)
	}
	at := homes(tb, backends, keys)
	byHome := make([][]string, len(backends))
	for _, key := range keys {
		byHome[at[key]] = append(byHome[at[key]], key)
	}
	for i, keys := range byHome {
		if len(keys) == 0 {
			tb.Fatalf("backend %d is home to none of %d keys", i, n)
		}
	}
	return byHome
}
