// Package probe has short conversations with a memcached, each on a connection of its
// own: whether it answers, which process it is, and making good what it missed. They are
// few, and kept apart from the connections that serve clients.
package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"cacherouter/membership/journal"
)

// TCP speaks the text protocol over TCP, or over a unix socket if the address is "unix:"
// and a path. The zero value is ready. It may be used by any goroutine. Each method ends
// when its context does; one without a deadline is given Timeout.
type TCP struct {
	// Dial opens connections; nil means plain ones.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// User and Password are said first, if User is not empty.
	User, Password string
	// Timeout bounds a conversation whose context has no deadline; 0 means 5 s.
	Timeout time.Duration
}

// ErrAnswer is returned when what answers is no memcached, or refuses.
var ErrAnswer = errors.New("unexpected answer")

// Probe asks for the version, which costs a server next to nothing.
func (t TCP) Probe(ctx context.Context, address string) error {
	return t.converse(ctx, "probe", address, func(c *bufio.ReadWriter) error {
		return ask(c, "version\r\n", "VERSION ")
	})
}

// Flush empties the server.
func (t TCP) Flush(ctx context.Context, address string) error {
	return t.converse(ctx, "flush", address, func(c *bufio.ReadWriter) error {
		return ask(c, "flush_all\r\n", "OK")
	})
}

// Identify says which process the server is.
func (t TCP) Identify(ctx context.Context, address string) (journal.Process, error) {
	var p journal.Process
	err := t.converse(ctx, "identify", address, func(c *bufio.ReadWriter) error {
		stats, err := stats(c)
		if err != nil {
			return err
		}
		uptime, err := strconv.Atoi(stats["uptime"])
		if err != nil {
			return fmt.Errorf("%w: no uptime", ErrAnswer)
		}
		p.PID, err = strconv.Atoi(stats["pid"])
		p.Started = time.Now().Add(-time.Duration(uptime) * time.Second)
		return err
	})
	return p, err
}

// Stats returns the answer to "stats" as it came, up to the first line that is no statistic.
func (t TCP) Stats(ctx context.Context, address string) (answer []byte, err error) {
	err = t.converse(ctx, "read statistics of", address, func(c *bufio.ReadWriter) error {
		c.WriteString("stats\r\n")
		if err := c.Flush(); err != nil {
			return err
		}
		for range maxStats {
			line, err := c.ReadSlice('\n')
			if err != nil {
				return err
			}
			answer = append(answer, line...)
			if !bytes.HasPrefix(line, []byte("STAT ")) {
				return nil
			}
		}
		return fmt.Errorf("%w: more than %d statistics", ErrAnswer, maxStats)
	})
	return answer, err
}

// Delete deletes keys. That one is not there is no error.
func (t TCP) Delete(ctx context.Context, address string, keys []journal.Entry) error {
	return t.converse(ctx, "delete keys at", address, func(c *bufio.ReadWriter) error {
		for len(keys) > 0 {
			n := min(len(keys), batch)
			if err := deleteAll(c, keys[:n]); err != nil {
				return err
			}
			keys = keys[n:]
		}
		return nil
	})
}

// batch is how many deletes are sent before their answers are read: few enough for the
// answers to fit into the socket's buffers.
const batch = 256

func deleteAll(c *bufio.ReadWriter, keys []journal.Entry) error {
	for _, k := range keys {
		c.WriteString(deletion(k.Key))
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for range keys {
		line, err := readLine(c)
		if err != nil {
			return err
		}
		switch line {
		case "DELETED", "NOT_FOUND", "HD", "NF":
		default:
			return fmt.Errorf("%w to a delete: %.80q", ErrAnswer, line)
		}
	}
	return nil
}

// deletion is the command for a key. Keys that the text protocol cannot say come from
// clients of the binary and the meta protocol.
func deletion(key []byte) string {
	if bytes.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "md " + base64.StdEncoding.EncodeToString(key) + " b\r\n"
	}
	return "delete " + string(key) + "\r\n"
}

// converse opens a connection for one conversation.
func (t TCP) converse(ctx context.Context, what, address string, f func(*bufio.ReadWriter) error) error {
	if _, ok := ctx.Deadline(); !ok {
		limit := t.Timeout
		if limit == 0 {
			limit = 5 * time.Second
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := t.dial(ctx, address)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		c := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
		if err = t.greet(c); err == nil {
			err = f(c)
		}
		stop()
		conn.Close()
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // rather than that the connection was closed
	}
	if err != nil {
		return fmt.Errorf("cannot %s %s: %w", what, address, err)
	}
	return nil
}

func (t TCP) dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	if t.Dial != nil {
		return t.Dial(ctx, network, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// greet says who we are, as memcached's text protocol wants it: as a set of any key.
func (t TCP) greet(c *bufio.ReadWriter) error {
	if t.User == "" {
		return nil
	}
	secret := t.User + " " + t.Password
	return ask(c, fmt.Sprintf("set auth 0 0 %d\r\n%s\r\n", len(secret), secret), "STORED")
}

// ask sends a command and expects one line that begins in a certain way.
func ask(c *bufio.ReadWriter, command, want string) error {
	c.WriteString(command)
	if err := c.Flush(); err != nil {
		return err
	}
	line, err := readLine(c)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, want) {
		return fmt.Errorf("%w: %.80q", ErrAnswer, line)
	}
	return nil
}

// readLine reads a line of up to the buffer's size.
func readLine(c *bufio.ReadWriter) (string, error) {
	line, err := c.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(line)), nil
}

// maxStats is how many lines of statistics are read.
const maxStats = 1000

func stats(c *bufio.ReadWriter) (map[string]string, error) {
	c.WriteString("stats\r\n")
	if err := c.Flush(); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for range maxStats {
		line, err := readLine(c)
		if err != nil || line == "END" {
			return all, err
		}
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "STAT" {
			if len(f) > 0 && f[0] == "STAT" {
				continue // a value with spaces, or none
			}
			return nil, fmt.Errorf("%w: %.80q", ErrAnswer, line)
		}
		all[f[1]] = f[2]
	}
	return nil, fmt.Errorf("%w: more than %d statistics", ErrAnswer, maxStats)
}
