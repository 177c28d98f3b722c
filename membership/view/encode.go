package view

import (
	"encoding/binary"
	"errors"
	"time"

	"cacherouter/membership/damping"
	"cacherouter/membership/health"
)

// format is the first byte of an encoded message; another one is refused.
const format = 1

// ErrMessage is returned for bytes that are not a message of ours.
var ErrMessage = errors.New("not a message of a router of this version")

// Encode returns a message as bytes: a format byte, then fields as varints and strings
// with their length before them.
func Encode(m Message) []byte {
	b := binary.AppendUvarint([]byte{format}, uint64(len(m.Observers)))
	for i := range m.Observers {
		b = m.Observers[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Decisions)))
	for i := range m.Decisions {
		b = m.Decisions[i].append(b)
	}
	return b
}

func (o *Observer) append(b []byte) []byte {
	b = appendString(b, o.Router)
	b = appendUints(b, o.Boot, o.Seq)
	b = binary.AppendVarint(b, o.Sent.UnixMilli())
	b = appendUints(b, o.List, o.Pending, o.Placement, bits(o.Abstains, o.Left), uint64(len(o.Verdicts)))
	for _, v := range o.Verdicts {
		b = appendString(b, v.Server)
		b = appendUints(b, uint64(v.Opinion), uint64(max(v.For, 0).Milliseconds()), bits(v.Flushed, false))
	}
	return b
}

func (d *Decision) append(b []byte) []byte {
	b = appendString(b, d.Server)
	b = appendUints(b, d.N, uint64(d.Was), uint64(d.Now))
	b = binary.AppendVarint(b, d.At.UnixMilli())
	b = appendUints(b, d.List, uint64(d.Mark.Penalty), uint64(d.Mark.Flips), bits(d.Mark.Suppressed, d.Mark.At.IsZero()))
	return binary.AppendVarint(b, d.Mark.At.UnixMilli())
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendUints(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func bits(a, b bool) uint64 {
	var n uint64
	if a {
		n |= 1
	}
	if b {
		n |= 2
	}
	return n
}

// Decode reads an encoded message. The result shares nothing with b.
func Decode(b []byte) (Message, error) {
	r := reader{b: b}
	var m Message
	if len(b) == 0 || b[0] != format {
		return m, ErrMessage
	}
	r.b = b[1:]
	for range r.count() {
		m.Observers = append(m.Observers, r.observer())
	}
	for range r.count() {
		m.Decisions = append(m.Decisions, r.decision())
	}
	if r.bad || len(r.b) > 0 {
		return Message{}, ErrMessage
	}
	return m, nil
}

// reader takes fields off the front of b. After a bad one it yields zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// upTo reads a number that must not be above limit.
func (r *reader) upTo(limit uint64) uint64 {
	v := r.uint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

// count reads how many elements follow; each takes at least a byte.
func (r *reader) count() uint64 { return r.upTo(uint64(len(r.b))) }

func (r *reader) time() time.Time {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return time.Time{}
	}
	r.b = r.b[n:]
	return time.UnixMilli(v)
}

func (r *reader) string() string {
	n := r.count()
	if n > uint64(len(r.b)) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) observer() Observer {
	o := Observer{Router: r.string(), Boot: r.uint(), Seq: r.uint(), Sent: r.time(),
		List: r.uint(), Pending: r.uint(), Placement: r.uint()}
	flags := r.upTo(3)
	o.Abstains, o.Left = flags&1 != 0, flags&2 != 0
	for range r.count() {
		o.Verdicts = append(o.Verdicts, r.verdict())
	}
	return o
}

// maxFor bounds a duration in a message, in milliseconds: about 3 years.
const maxFor = 1e11

func (r *reader) verdict() Verdict {
	return Verdict{Server: r.string(), Opinion: health.Opinion(r.upTo(uint64(health.Dead))),
		For: time.Duration(r.upTo(maxFor)) * time.Millisecond, Flushed: r.upTo(1) == 1}
}

func (r *reader) decision() Decision {
	d := Decision{Server: r.string(), N: r.uint(), Was: Status(r.upTo(uint64(Draining))),
		Now: Status(r.upTo(uint64(Draining))), At: r.time(), List: r.uint()}
	d.Mark = damping.Mark{Penalty: int(r.upTo(1 << 40)), Flips: int(r.upTo(1 << 20))}
	flags := r.upTo(3)
	d.Mark.Suppressed = flags&1 != 0
	if at := r.time(); flags&2 == 0 {
		d.Mark.At = at
	}
	return d
}
