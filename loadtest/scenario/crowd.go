//go:build linux

package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"cacherouter/loadtest/fleet"
	"cacherouter/loadtest/origin"
)

// crowd is clients that ask one router for the same key at the same moment. The moment is exact: the
// router is stopped while they send, so that all requests are there when it goes on.
type crowd struct {
	router  *fleet.Router
	conns   []net.Conn
	readers []*bufio.Reader
	origin  *origin.Origin // nil means that those who miss leave it at that
}

// crowdPatience bounds one stampede.
const crowdPatience = 10 * time.Second

// crowdValue is what a client stores.
var crowdValue = strings.Repeat("v", 100)

func newCrowd(f *fleet.Fleet, size int) (*crowd, error) {
	c := &crowd{router: f.Routers[0]}
	for range size {
		conn, err := net.DialTimeout("tcp", c.router.Addr, crowdPatience)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("cannot gather a crowd: %w", err)
		}
		c.conns, c.readers = append(c.conns, conn), append(c.readers, bufio.NewReader(conn))
		if _, err := c.converse(len(c.conns)-1, "version\r\n"); err != nil { // it is answered, so a loop has the connection
			c.close()
			return nil, fmt.Errorf("cannot gather a crowd: %w", err)
		}
	}
	return c, nil
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// asked is how often the origin was.
func (c *crowd) asked() int {
	if c.origin == nil {
		return 0
	}
	return int(c.origin.Asked())
}

// ask has all ask for the key, and returns how long each waited for its first answer, from when the
// router went on, in the order of the clients, and how many got none or could not store.
func (c *crowd) ask(key string) (took []time.Duration, failed int, err error) {
	if err := c.router.Pause(); err != nil {
		return nil, 0, err
	}
	errs := make([]error, len(c.conns))
	for i, conn := range c.conns {
		_ = conn.SetDeadline(time.Now().Add(crowdPatience)) // fails for closed connections, as what follows does
		_, errs[i] = io.WriteString(conn, "get "+key+"\r\n")
	}
	begin := time.Now()
	if err := c.router.Resume(); err != nil {
		return nil, 0, err
	}
	took = make([]time.Duration, len(c.conns))
	var waiting sync.WaitGroup
	for i := range c.conns {
		waiting.Go(func() {
			hit, err := readGet(c.readers[i])
			took[i] = time.Since(begin)
			if err == nil && !hit && c.origin != nil {
				err = c.fetch(i, key)
			}
			errs[i] = errors.Join(errs[i], err)
		})
	}
	waiting.Wait()
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	return took, failed, nil
}

// fetch gets the value from the origin and stores it.
func (c *crowd) fetch(i int, key string) error {
	c.origin.Fetch()
	reply, err := c.converse(i, fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(crowdValue), crowdValue))
	if err == nil && reply != "STORED\r\n" {
		err = fmt.Errorf("cannot store: %q", reply)
	}
	return err
}

// converse sends a request to which the reply is one line, and returns that.
func (c *crowd) converse(i int, request string) (reply string, err error) {
	_ = c.conns[i].SetDeadline(time.Now().Add(crowdPatience))
	if _, err := io.WriteString(c.conns[i], request); err != nil {
		return "", err
	}
	return c.readers[i].ReadString('\n')
}

// readGet reads the reply to a get of one key. A value that is not the crowd's is an error.
func readGet(in *bufio.Reader) (hit bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil || line == "END\r\n" {
		return false, err
	}
	rest := make([]byte, len(crowdValue)+len("\r\nEND\r\n"))
	if !strings.HasPrefix(line, "VALUE ") {
		return false, fmt.Errorf("no reply to a get: %q", line)
	}
	if _, err := io.ReadFull(in, rest); err != nil {
		return false, err
	}
	if string(rest) != crowdValue+"\r\nEND\r\n" {
		return false, fmt.Errorf("not the value that was stored: %q", rest)
	}
	return true, nil
}
