package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"cacherouter/internal/history"
	"cacherouter/internal/memcachedtest"
)

// caller is one client connection whose operations are recorded. It sends several requests in one packet, in the text
// or the meta protocol as chance has it, and connects anew when the connection breaks.
type caller struct {
	addr   string
	log    *history.Log
	rng    *rand.Rand
	cells  []*heldCell
	simple bool // whether it only gets, sets and deletes
	reads  int  // per cent of its requests that are gets before chance decides
	ttl    int  // seconds that what it stores lives; 0 means for ever
	pieces int  // names given to pieces of values so far

	conn net.Conn // nil while there is none
	r    *bufio.Reader
	out  []byte // requests of the batch
	asks []ask  // what they were, in order
}

// heldCell is a key and what this caller holds of it.
type heldCell struct {
	key     string
	counter bool
	token   string // the cas token of the last gets, and the value that had it
	value   string
	life    int64 // of the servers, when the token was given
}

// ask is one request that waits for its reply.
type ask struct {
	kind  history.Kind
	meta  bool
	cells []*heldCell
	ops   []int // their numbers in the log
	life  int64
}

// errNonsense is wrapped by errors that no failure of a server or a router excuses.
var errNonsense = errors.New("a reply makes no sense")

// batch sends the requests that are waiting in one packet and reads the replies. It returns an error only for what is
// wrong in itself; a connection that breaks leaves the operations unanswered.
func (c *caller) batch() error {
	defer func() { c.out, c.asks = c.out[:0], c.asks[:0] }()
	if _, err := c.conn.Write(c.out); err != nil {
		return c.drop(err)
	}
	c.conn.SetReadDeadline(time.Now().Add(patience))
	for i := range c.asks {
		if err := c.answer(&c.asks[i]); err != nil {
			return c.drop(err)
		}
	}
	return nil
}

// drop closes the connection, and returns only what is wrong with more than it.
func (c *caller) drop(err error) error {
	c.conn.Close()
	c.conn = nil
	var timeout net.Error
	if errors.Is(err, errNonsense) || errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return nil
}

// connected connects unless there is a connection, and tells whether there is one now.
func (c *caller) connected() bool {
	if c.conn == nil {
		conn, err := memcachedtest.Dial(c.addr, patience)
		if err != nil {
			return false
		}
		c.conn, c.r = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	return true
}

// read asks for the values of cells, by get, gets, or mg if there is one.
func (c *caller) read(kind history.Kind, meta bool, life int64, cells ...*heldCell) {
	a := ask{kind: kind, meta: meta, cells: cells, life: life}
	for _, cell := range cells {
		a.ops = append(a.ops, c.log.Call(history.Op{Kind: kind, Key: cell.key}))
	}
	switch {
	case !meta:
		c.out = append(append(c.out, kind.String()...), ' ')
		for _, cell := range cells {
			c.out = append(append(c.out, cell.key...), ' ')
		}
		c.out = append(c.out[:len(c.out)-1], "\r\n"...)
	case kind == history.Gets:
		c.out = fmt.Appendf(c.out, "mg %s v c k\r\n", cells[0].key)
	default:
		c.out = fmt.Appendf(c.out, "mg %s v\r\n", cells[0].key)
	}
	c.asks = append(c.asks, a)
}

// modes are the mode flags of ms for what the text protocol has verbs for.
var modes = map[history.Kind]string{history.Set: "MS", history.Add: "ME", history.Append: "MA", history.Cas: "MS"}

// store asks to store data, recorded as value; a cas is for the token that the cell holds, and uses it up.
func (c *caller) store(kind history.Kind, meta bool, cell *heldCell, value string, data []byte) {
	op := history.Op{Kind: kind, Key: cell.key, Value: value}
	if kind == history.Cas {
		op.Expect, op.Token = cell.value, cell.token
	}
	c.asks = append(c.asks, ask{kind: kind, meta: meta, ops: []int{c.log.Call(op)}})
	switch {
	case meta && kind == history.Cas:
		c.out = fmt.Appendf(c.out, "ms %s %d C%s T%d\r\n", cell.key, len(data), cell.token, c.ttl)
	case meta:
		c.out = fmt.Appendf(c.out, "ms %s %d %s T%d\r\n", cell.key, len(data), modes[kind], c.ttl)
	case kind == history.Cas:
		c.out = fmt.Appendf(c.out, "cas %s 0 %d %d %s\r\n", cell.key, c.ttl, len(data), cell.token)
	default:
		c.out = fmt.Appendf(c.out, "%v %s 0 %d %d\r\n", kind, cell.key, c.ttl, len(data))
	}
	c.out = append(append(c.out, data...), "\r\n"...)
	if kind == history.Cas {
		cell.token = ""
	}
}

// change asks for a delete, a touch, or an incr by delta.
func (c *caller) change(kind history.Kind, meta bool, cell *heldCell, delta int64) {
	op := history.Op{Kind: kind, Key: cell.key, Delta: delta}
	c.asks = append(c.asks, ask{kind: kind, meta: meta, ops: []int{c.log.Call(op)}})
	switch {
	case kind == history.Incr:
		c.count(meta, cell.key, delta)
	case kind == history.Delete && meta:
		c.out = fmt.Appendf(c.out, "md %s\r\n", cell.key)
	case kind == history.Delete:
		c.out = fmt.Appendf(c.out, "delete %s\r\n", cell.key)
	case meta:
		c.out = fmt.Appendf(c.out, "mg %s T%d\r\n", cell.key, c.ttl)
	default:
		c.out = fmt.Appendf(c.out, "touch %s %d\r\n", cell.key, c.ttl)
	}
}

// count asks to move a counter by delta.
func (c *caller) count(meta bool, key string, delta int64) {
	switch {
	case meta && delta < 0:
		c.out = fmt.Appendf(c.out, "ma %s v MD D%d\r\n", key, -delta)
	case meta:
		c.out = fmt.Appendf(c.out, "ma %s v D%d\r\n", key, delta)
	case delta < 0:
		c.out = fmt.Appendf(c.out, "decr %s %d\r\n", key, -delta)
	default:
		c.out = fmt.Appendf(c.out, "incr %s %d\r\n", key, delta)
	}
}

// answer reads the reply to a request and records what it says.
func (c *caller) answer(a *ask) error {
	line, err := c.line()
	switch {
	case failed(err):
		return nil // unknown
	case err != nil:
		return err
	case a.kind == history.Get || a.kind == history.Gets:
		if a.meta {
			return c.metaRead(a, line)
		}
		return c.textRead(a, line)
	case a.kind == history.Incr:
		return c.counted(a, line)
	}
	if c.ttl > 0 && a.meta { // it may tell that the item is to be renewed
		line = strings.TrimSuffix(strings.TrimSuffix(line, " W"), " Z")
	}
	outcome, known := answers[a.kind][line]
	if !known {
		return fmt.Errorf("%w: %v gives %q", errNonsense, a.kind, line)
	}
	c.log.Return(a.ops[0], outcome, "")
	return nil
}

// answers are the lines that say how a change went, text and meta.
var answers = map[history.Kind]map[string]history.Outcome{
	history.Set:    {"STORED": history.Done, "HD": history.Done},
	history.Add:    {"STORED": history.Done, "HD": history.Done, "NOT_STORED": history.Refused, "NS": history.Refused},
	history.Append: {"STORED": history.Done, "HD": history.Done, "NOT_STORED": history.Missed, "NS": history.Missed},
	history.Cas: {"STORED": history.Done, "HD": history.Done, "EXISTS": history.Refused, "EX": history.Refused,
		"NOT_FOUND": history.Missed, "NF": history.Missed},
	history.Delete: {"DELETED": history.Done, "HD": history.Done, "NOT_FOUND": history.Missed, "NF": history.Missed},
	history.Touch: {"TOUCHED": history.Done, "HD": history.Done, "NOT_FOUND": history.Missed, "NF": history.Missed,
		"EN": history.Missed},
}

func (c *caller) line() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if strings.HasPrefix(line, "SERVER_ERROR ") {
		return "", serverError(line)
	}
	return line, nil
}

// textRead reads the rest of a reply to get or gets, whose values come in the order of the keys.
func (c *caller) textRead(a *ask, line string) error {
	found := make(map[*heldCell]string)
	for n := 0; line != "END"; n++ {
		words := strings.Split(line, " ")
		for n < len(a.cells) && len(words) > 1 && a.cells[n].key != words[1] {
			n++
		}
		if n >= len(a.cells) || words[0] != "VALUE" || len(words) < 4 {
			return fmt.Errorf("%w: a get gives %q", errNonsense, line)
		}
		value, err := c.value(a.cells[n], words[3])
		if err != nil {
			return err
		}
		found[a.cells[n]] = value
		if a.kind == history.Gets && len(words) == 5 {
			a.cells[n].hold(words[4], value, a.life)
			c.log.Token(a.ops[n], words[4])
		}
		if line, err = c.line(); failed(err) {
			return nil // what has come does not count
		} else if err != nil {
			return err
		}
	}
	for i, cell := range a.cells {
		c.found(a.ops[i], found[cell])
	}
	return nil
}

// found records a read's value, or a miss if it is empty.
func (c *caller) found(op int, value string) {
	outcome := history.Done
	if value == "" {
		outcome = history.Missed
	}
	c.log.Return(op, outcome, value)
}

func (c *caller) metaRead(a *ask, line string) error {
	if line == "EN" || line == "EN k"+a.cells[0].key { // servers differ in whether a miss returns the key
		c.found(a.ops[0], "")
		return nil
	}
	words := strings.Split(line, " ")
	if words[0] != "VA" || len(words) < 2 {
		return fmt.Errorf("%w: mg gives %q", errNonsense, line)
	}
	value, err := c.value(a.cells[0], words[1])
	if err != nil {
		return err
	}
	for _, word := range words[2:] {
		switch {
		case word[0] == 'c':
			a.cells[0].hold(word[1:], value, a.life)
			c.log.Token(a.ops[0], word[1:])
		case c.ttl > 0 && (word == "W" || word == "Z"): // the item is to be renewed
		case word != "k"+a.cells[0].key:
			return fmt.Errorf("%w: %v of %s by mg gives %q and %s", errNonsense, a.kind, a.cells[0].key, line, value)
		}
	}
	c.found(a.ops[0], value)
	return nil
}

// hold keeps a token, unless tokens are worth nothing now.
func (h *heldCell) hold(token, value string, life int64) {
	if life != unsettled {
		h.token, h.value, h.life = token, value, life
	}
}

// counted reads the rest of a reply to incr, decr or ma.
func (c *caller) counted(a *ask, line string) error {
	if line == "NOT_FOUND" || line == "NF" {
		c.log.Return(a.ops[0], history.Missed, "")
		return nil
	}
	if size, found := strings.CutPrefix(line, "VA "); found && a.meta {
		data, err := c.data(size)
		if err != nil {
			return err
		}
		line = string(data)
	}
	n, err := number(line)
	if err != nil {
		return err
	}
	c.log.Return(a.ops[0], history.Done, n)
	return nil
}

// number checks a counter's value. A decr that needs fewer digits than before leaves spaces at the end.
func number(text string) (string, error) {
	text = strings.TrimRight(text, " ")
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return "", fmt.Errorf("%w: a counter is %.100q", errNonsense, text)
	}
	return text, nil
}

// value reads a value of the given size and returns it as the history wants it.
func (c *caller) value(cell *heldCell, size string) (string, error) {
	data, err := c.data(size)
	if err != nil {
		return "", err
	}
	if cell.counter {
		return number(string(data))
	}
	value, err := history.Parse(data)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNonsense, err)
	}
	return value, nil
}

// data reads a block of bytes and the end of line after it.
func (c *caller) data(size string) ([]byte, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > 64<<20 {
		return nil, fmt.Errorf("%w: a value of %q bytes", errNonsense, size)
	}
	block := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(c.r, block); err != nil {
		return nil, err
	}
	if string(block[n:]) != "\r\n" {
		return nil, fmt.Errorf("%w: a value ends in %q", errNonsense, block[n:])
	}
	return block[:n], nil
}
