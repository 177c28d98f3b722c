package router

import (
	"bytes"
	"time"

	"cacherouter/memproto"

	"github.com/cespare/xxhash/v2"
)

// maxJoining bounds the bytes of values that a loop puts together at a time. Others wait for
// their turn; one that is longer by itself has the loop to itself.
const maxJoining = 64 << 20

// join puts the value together that a head stands for, for all who wait for it.
type join struct {
	w       *worker
	key     []byte
	coded   bool
	reply   []byte // the one that told of the head
	exptime []byte // that the parts are given, too; empty if none

	q      *request // who asked, by itself
	words  []byte   // what it has asked
	crew   crew     // or with others
	flight landing
	node   *node // who told of the head, and when; for records
	sent   time.Duration
	first  time.Duration

	head   memproto.Head
	length int64
	value  []byte // of all parts, what clients have put before and behind included
	from   int    // of the first part in it
	left   int    // replies to wait for
	torn   bool   // a part is not there
	fail   []byte // what a part was answered with that could not be read
	joined bool   // counted by the loop
}

// joins are those of a loop.
type joins struct {
	most  int // maxJoining, but in tests
	bytes int // of those that are begun
	queue []*join
}

func (w *worker) newJoin(key []byte, coded bool, reply []byte) *join {
	return &join{w: w, key: bytes.Clone(key), coded: coded, reply: bytes.Clone(reply)}
}

// whole is the place of what asks for the head, among those of parts.
const whole = -1

// begin looks at the head. A reply that does not bring it, such as one that tells only its
// flags, has it asked for first.
func (j *join) begin() {
	if found, ok := memproto.ParseFound(j.reply); ok {
		j.open(found.Value)
		return
	}
	w := j.w
	line, verb := memproto.AppendGet(nil, j.key, j.coded)
	w.newPiece(j, whole, j.key, j.coded, verb, memproto.Copyable).fly(line)
}

// open reads the head, and has the parts asked for when there is room for them. Who wants
// only their length needs none.
func (j *join) open(value []byte) {
	head, before, behind, ok := memproto.ParseHead(value)
	j.head, j.from, j.length = head, len(before), int64(len(before)+int(head.Length)+len(behind))
	switch {
	case !ok || j.length > int64(j.w.p.cfg.MaxValue)+int64(len(before)+len(behind)):
		j.torn = true
		j.end()
		return
	case j.reply[0] == 'H':
		j.prolong()
		j.end()
		return
	}
	j.value = make([]byte, j.length)
	copy(j.value, before)
	copy(j.value[j.from+int(head.Length):], behind)
	f := j.w.front
	f.joins.queue = append(f.joins.queue, j)
	f.joinNext()
}

// joinNext begins those whose turn it is.
func (f *front) joinNext() {
	s := &f.joins
	for len(s.queue) > 0 && (s.bytes == 0 || s.bytes+len(s.queue[0].value) <= s.most) {
		j := s.queue[0]
		s.queue = s.queue[1:]
		s.bytes += len(j.value)
		j.joined = true
		j.ask()
	}
}

// ask asks for the parts.
func (j *join) ask() {
	w := j.w
	j.left = 1 // held while some are not asked for yet, as one may fail at once
	var key, line []byte
	for i := range j.head.Parts() {
		j.left++
		key = j.head.AppendKey(key[:0], i)
		line = append(append(append(line[:0], "get "...), key...), "\r\n"...)
		w.newPiece(j, i, key, false, memproto.Get, memproto.Copyable).fly(line)
	}
	j.arrived()
}

// took takes a part, or the head.
func (j *join) took(i int, reply []byte, failed bool) {
	found, ok := memproto.ParseFound(reply)
	switch {
	case failed && memproto.Missed(reply):
		j.fail = j.missReply()
	case failed || !ok && !memproto.Missed(reply):
		j.fail = bytes.Clone(reply)
	case i == whole && !ok: // it is gone meanwhile
		j.fail = j.missReply()
	case i == whole && memproto.TellsHead(reply):
		j.open(found.Value)
		return
	case i == whole: // it is another by now, which is told of instead
		j.length = int64(len(found.Value))
		flags, _ := memproto.ParseUint(found.Flags)
		j.head.Flags = uint32(flags)
	case ok:
		from, to := j.head.Part(i)
		if len(found.Value) == to-from {
			copy(j.value[j.from+from:], found.Value)
		} else {
			j.torn = true
		}
	default:
		j.torn = true
	}
	if i == whole {
		j.end()
		return
	}
	j.arrived()
}

// arrived counts one reply less to wait for; with the last the value is whole, or there is
// none.
func (j *join) arrived() {
	if j.left--; j.left > 0 {
		return
	}
	value := j.value[j.from : j.from+int(j.head.Length)]
	if len(j.fail) == 0 && !j.torn && xxhash.Sum64(value) != j.head.Sum {
		j.torn = true
	}
	j.prolong()
	j.end()
}

// prolong gives the parts the life that the head was given.
func (j *join) prolong() {
	if len(j.exptime) == 0 || j.torn || len(j.fail) > 0 {
		return
	}
	j.w.prolong(&j.head, j.exptime)
}

func (w *worker) prolong(h *memproto.Head, exptime []byte) {
	var key, line []byte
	for i := range h.Parts() {
		key = h.AppendKey(key[:0], i)
		line = append(append(append(line[:0], "touch "...), key...), ' ')
		line = append(append(line, exptime...), "\r\n"...)
		w.newPiece(nobody{}, 0, key, false, memproto.Touch, memproto.Changes).write(line)
	}
}

// end answers all who wait. A head whose parts are gone is deleted, as it would keep an add
// from storing what readers do not find.
func (j *join) end() {
	w := j.w
	var reply []byte
	switch {
	case len(j.fail) > 0:
		reply, j.flight.asker = j.fail, nil
	case j.torn:
		w.stats.TornValues++
		w.forgetItem(j.key, j.coded)
		reply, j.flight.asker = j.missReply(), nil
	default:
		w.stats.Joined++
		reply = memproto.AppendReplyOf(nil, j.reply, j.head.Flags, j.length, j.value)
	}
	size, joined := len(j.value), j.joined
	j.value = nil
	if j.q != nil {
		j.q.served(reply)
	} else {
		j.flight.reply = reply
		j.flight.serveAll(&j.crew, j.node, j.sent, j.first)
	}
	if joined {
		w.front.joins.bytes -= size
		w.front.joinNext()
	}
}

// missReply is what a server would have said had it not the item.
func (j *join) missReply() []byte {
	if memproto.IsValue(j.reply) {
		return endLine
	}
	return memproto.AppendMetaMiss(nil, j.words)
}

// toucher finds out whether what was touched is a head, and then touches its parts. Nobody
// waits for that: should it fail, the value is gone when its parts' old time is over.
type toucher struct {
	w       *worker
	key     []byte
	coded   bool
	exptime []byte
}

func (w *worker) touchParts(key []byte, coded bool, exptime []byte) {
	t := &toucher{w, bytes.Clone(key), coded, exptime}
	line := memproto.AppendAskFlagsOf(nil, key, coded)
	w.newPiece(t, 0, key, coded, memproto.MetaGet, memproto.Reads).fly(line)
}

func (t *toucher) took(_ int, reply []byte, failed bool) {
	switch found, ok := memproto.ParseFound(reply); {
	case failed || !memproto.TellsHead(reply):
	case !ok: // it tells no more than that
		line, verb := memproto.AppendGet(nil, t.key, t.coded)
		t.w.newPiece(t, 0, t.key, t.coded, verb, memproto.Copyable).fly(line)
	default:
		if head, _, _, ok := memproto.ParseHead(found.Value); ok {
			t.w.prolong(&head, t.exptime)
		}
	}
}
