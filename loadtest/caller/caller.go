// Package caller is a memcached client as an application has it: one connection, one request at a
// time, a timeout for each. It is what scenarios see servers and routers through.
package caller

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// maxValue bounds what is taken for the size of a value, in bytes.
const maxValue = 8 << 20

// Refusal is an error line, as SERVER_ERROR: the request was answered, and the connection goes on.
// All other errors end the connection.
type Refusal string

func (r Refusal) Error() string { return "refused: " + string(r) }

// Conn is a connection to one target, made when it is first needed and made again after it broke.
// It is not safe for concurrent use.
type Conn struct {
	// Target is "host:port".
	Target string
	// Timeout bounds connecting and each request; 0 means no bound.
	Timeout time.Duration

	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// Get returns the value of a key. The value is the caller's own.
func (c *Conn) Get(key string) (value []byte, hit bool, err error) {
	err = c.ask(append(append(append(c.out[:0], "get "...), key...), "\r\n"...), func() (err error) {
		value, hit, err = c.readValue(key)
		return err
	})
	return value, hit, err
}

// Set stores a value for ttl seconds; 0 is for ever.
func (c *Conn) Set(key string, value []byte, ttl int) error {
	b := fmt.Appendf(c.out[:0], "set %s 0 %d %d\r\n", key, ttl, len(value))
	b = append(append(b, value...), "\r\n"...)
	return c.ask(b, func() error { return c.expect("STORED") })
}

// Delete removes a key. That it was not there is no error.
func (c *Conn) Delete(key string) error {
	return c.ask(fmt.Appendf(c.out[:0], "delete %s\r\n", key), func() error { return c.expect("DELETED", "NOT_FOUND") })
}

// Stats returns those of a server's statistics that are whole numbers.
func (c *Conn) Stats() (stats map[string]int, err error) {
	stats = map[string]int{}
	err = c.ask(append(c.out[:0], "stats\r\n"...), func() error {
		for {
			line, err := c.readLine()
			if err != nil || string(line) == "END" {
				return err
			}
			fields := bytes.Fields(line)
			if len(fields) < 2 || string(fields[0]) != "STAT" {
				return strange(line)
			}
			if n, err := strconv.Atoi(string(fields[len(fields)-1])); err == nil {
				stats[string(fields[1])] = n
			}
		}
	})
	return stats, err
}

// Close closes the connection, if there is one. The next request makes another.
func (c *Conn) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends the request and reads its reply. Whatever is no answer ends the connection, because
// the reply may still come and must not be taken for the next one's.
func (c *Conn) ask(request []byte, read func() error) error {
	c.out = request
	err := c.connect()
	if err == nil {
		_, err = c.conn.Write(request)
	}
	if err == nil {
		err = read()
	}
	if _, refused := err.(Refusal); err != nil && !refused {
		c.Close()
		return fmt.Errorf("cannot ask %s: %w", c.Target, err)
	}
	return err
}

func (c *Conn) connect() (err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.Target, c.Timeout); err != nil {
			c.conn = nil
			return err
		}
		c.in = bufio.NewReader(c.conn)
	}
	if c.Timeout > 0 {
		return c.conn.SetDeadline(time.Now().Add(c.Timeout))
	}
	return nil
}

// readLine returns a line without its end; it is valid until the next read.
func (c *Conn) readLine() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	for _, refused := range []string{"ERROR", "SERVER_ERROR", "CLIENT_ERROR"} {
		if rest, ok := bytes.CutPrefix(line, []byte(refused)); ok && (len(rest) == 0 || rest[0] == ' ') {
			return nil, Refusal(line)
		}
	}
	return line, nil
}

func (c *Conn) expect(lines ...string) error {
	got, err := c.readLine()
	if err != nil {
		return err
	}
	for _, line := range lines {
		if string(got) == line {
			return nil
		}
	}
	return strange(got)
}

func (c *Conn) readValue(key string) ([]byte, bool, error) {
	line, err := c.readLine()
	if err != nil || string(line) == "END" {
		return nil, false, err
	}
	fields := bytes.Fields(line)
	if len(fields) != 4 || string(fields[0]) != "VALUE" || string(fields[1]) != key {
		return nil, false, strange(line)
	}
	size, err := strconv.ParseUint(string(fields[3]), 10, 32)
	if err != nil || size > maxValue {
		return nil, false, strange(line)
	}
	value := make([]byte, size+2)
	if _, err := io.ReadFull(c.in, value); err != nil {
		return nil, false, err
	}
	value, ok := bytes.CutSuffix(value, []byte("\r\n"))
	if !ok {
		return nil, false, strange(value)
	}
	err = c.expect("END")
	return value, err == nil, err
}

func strange(reply []byte) error {
	return fmt.Errorf("reply is not memcached's: %.80q", reply)
}
