//go:build linux

package load

import (
	"bytes"
	"errors"
	"fmt"
)

// Answers replies to the requests of a text load as a cache that holds every key, at the least
// cost: every hit is laid out beforehand, and what is set is not looked at. A server made of it is
// what any other can be compared with. It may be used concurrently.
type Answers struct {
	hits   []byte // one after the other
	hit    int    // bytes in a hit
	set    int    // bytes in a set request
	number int    // of keys

	stored, version []byte
}

const (
	getLen     = len("get ") + keyLen + len("\r\n")
	askVersion = "version\r\n"
)

// NewAnswers lays out the replies to p, whose protocol must be Text, and whose keys and values must be all
// as long, have no versions, and live for ever.
func NewAnswers(p Plan) (*Answers, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	size, fixed := p.ValueSize.Fixed()
	if !fixed || p.KeySize != "" || p.Versions || p.Lives != "" {
		return nil, errors.New("cannot lay out answers: keys and values must be all as long, without versions and lives")
	}
	k := newKeyspace(p)
	a := &Answers{
		number: p.Keys, set: len(text{k}.appendSet(nil, call{})),
		stored: []byte("STORED\r\n"), version: []byte("VERSION 0\r\n"),
	}
	for i := range uint32(p.Keys) {
		a.hits = fmt.Appendf(a.hits, "VALUE %s 0 %d\r\n", k.key(i), size)
		a.hits = append(k.appendValue(a.hits, i, 0), afterValue...)
	}
	a.hit = len(a.hits) / p.Keys
	return a, nil
}

// Longest is the bytes of the longest request.
func (a *Answers) Longest() int { return a.set }

// Append appends the replies to the whole requests at the start of in to dst, and returns the bytes
// these took. An error means that in is no load of the plan.
func (a *Answers) Append(dst, in []byte) (out []byte, taken int, err error) {
	for taken < len(in) {
		reply, n, err := a.one(in[taken:])
		if n == 0 || err != nil {
			return dst, taken, err
		}
		dst = append(dst, reply...)
		taken += n
	}
	return dst, taken, nil
}

// one is the reply to the request at the start of in, and the bytes of the request, 0 when it is
// not whole.
func (a *Answers) one(in []byte) (reply []byte, taken int, err error) {
	if len(in) < len(askVersion) {
		return nil, 0, nil
	}
	switch {
	case bytes.HasPrefix(in, []byte("get ")):
		if len(in) < getLen {
			return nil, 0, nil
		}
		reply, err = a.hitOf(in[len("get "):][:keyLen])
		return reply, getLen, err
	case bytes.HasPrefix(in, []byte("set ")):
		if len(in) < a.set {
			return nil, 0, nil
		}
		return a.stored, a.set, nil
	case bytes.HasPrefix(in, []byte(askVersion)):
		return a.version, len(askVersion), nil
	}
	return nil, 0, strangeRequest(in)
}

func (a *Answers) hitOf(key []byte) ([]byte, error) {
	i, ok := parseSize(key[len("lt:"):])
	if !ok || i >= a.number {
		return nil, strangeRequest(key)
	}
	return a.hits[i*a.hit:][:a.hit], nil
}

func strangeRequest(b []byte) error {
	return fmt.Errorf("cannot answer, no request of the load: %q", b[:min(len(b), shownOfReply)])
}
