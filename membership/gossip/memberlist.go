package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// maxPacket is the size, in bytes, up to which a message goes by UDP. Longer ones, and
// full states, go by TCP.
const maxPacket = 1200

// memberList is memberlist as we use it. This file is all that knows it. Nil is one without
// members, which sends nothing.
type memberList struct {
	ml      *memberlist.Memberlist
	keyring *memberlist.Keyring // nil without encryption
	self    Member
	sending sync.WaitGroup

	note atomic.Pointer[string]

	mu   sync.Mutex
	here map[string]memberlist.Node // guarded by mu: copies, as memberlist goes on writing to its own
}

func newMemberList(c Config, g *Gossip) (*memberList, error) {
	l := &memberList{here: map[string]memberlist.Node{}}
	if len(c.Note) > maxNote {
		return nil, fmt.Errorf("a note of %d bytes is too long", len(c.Note))
	}
	l.note.Store(&c.Note)
	mc, err := settings(c)
	if err != nil {
		return nil, err
	}
	if len(c.Keys) > 0 {
		if l.keyring, err = memberlist.NewKeyring(c.Keys, c.Keys[0]); err != nil {
			return nil, err
		}
		mc.Keyring = l.keyring
	}
	d := &delegate{g: g, l: l}
	mc.Delegate, mc.Events = d, d
	if l.ml, err = memberlist.Create(mc); err != nil {
		return nil, err
	}
	l.self = Member{Name: c.Name, Address: l.ml.LocalNode().Address()}
	return l, nil
}

// settings translates the configuration. It is memberlist's for local networks, with
// shorter timeouts, without compression of our small messages, and with more frequent
// exchanges of the full state: news of a member now and then misses one of the others,
// which then learns of it only so.
func settings(c Config) (*memberlist.Config, error) {
	mc := memberlist.DefaultLANConfig()
	mc.PushPullInterval = 15 * time.Second
	if c.fast {
		mc.PushPullInterval, mc.GossipInterval = 500*time.Millisecond, 100*time.Millisecond
		mc.ProbeInterval, mc.ProbeTimeout = 100*time.Millisecond, 50*time.Millisecond
		mc.SuspicionMult, mc.GossipToTheDeadTime = 3, time.Second
	}
	var err error
	if mc.BindAddr, mc.BindPort, err = hostPort(c.Bind); err != nil {
		return nil, err
	}
	mc.AdvertisePort = mc.BindPort
	if c.Advertise != "" {
		if mc.AdvertiseAddr, mc.AdvertisePort, err = hostPort(c.Advertise); err != nil {
			return nil, err
		}
	}
	mc.Name = c.Name
	mc.Label = "cacherouter/" + c.Cluster
	mc.TCPTimeout = 2 * time.Second
	mc.EnableCompression = false
	mc.DeadNodeReclaimTime = 30 * time.Second
	mc.Logger = log.New(&logWriter{log: c.Log}, "", 0)
	return mc, nil
}

func hostPort(s string) (string, int, error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("bad port %q", p)
	}
	return host, int(port), nil
}

func (l *memberList) health() int {
	if l == nil {
		return 0
	}
	return l.ml.GetHealthScore()
}

func (l *memberList) members() []Member {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Member
	for _, n := range l.here {
		all = append(all, Member{n.Name, n.Address(), string(n.Meta)})
	}
	return all
}

// others returns the members to send to.
func (l *memberList) others() []memberlist.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []memberlist.Node
	for _, n := range l.here {
		if n.Name != l.self.Name {
			all = append(all, n)
		}
	}
	return all
}

func (l *memberList) join(addrs []string) (int, error) {
	if l == nil {
		return 0, errPaused
	}
	return l.ml.Join(addrs)
}

var errPaused = errors.New("gossip is paused")

// send sends to all other members and returns how many those are. Only long messages can
// take a while, so they are sent in the background.
func (l *memberList) send(msg []byte) int {
	if l == nil {
		return 0
	}
	others := l.others()
	for i := range others {
		if len(msg) <= maxPacket {
			l.ml.SendBestEffort(&others[i], msg) // an error is a loss like any other
			continue
		}
		l.sending.Go(func() { l.ml.SendReliable(&others[i], msg) })
	}
	return len(others)
}

// setKeys makes the keyring hold just these keys.
func (l *memberList) setKeys(keys [][]byte) error {
	if l == nil {
		return errPaused
	}
	if l.keyring == nil || len(keys) == 0 {
		return errors.New("encryption cannot be turned on or off while running")
	}
	for _, k := range keys {
		if err := l.keyring.AddKey(k); err != nil {
			return err
		}
	}
	if err := l.keyring.UseKey(keys[0]); err != nil {
		return err
	}
	for _, old := range l.keyring.GetKeys() {
		if !containsKey(keys, old) {
			if err := l.keyring.RemoveKey(old); err != nil {
				return err
			}
		}
	}
	return nil
}

func containsKey(keys [][]byte, key []byte) bool {
	for _, k := range keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}

// maxNote is the longest note, in bytes; memberlist would take 512.
const maxNote = 255

// noteTimeout is how long it may take to tell one other member.
const noteTimeout = 2 * time.Second

// setNote changes the note and tells the others. It waits until one of them has been told.
func (l *memberList) setNote(note string) error {
	if l == nil {
		return errPaused
	}
	if len(note) > maxNote {
		return fmt.Errorf("a note of %d bytes is too long", len(note))
	}
	l.note.Store(&note)
	return l.ml.UpdateNode(noteTimeout)
}

func (l *memberList) leave(timeout time.Duration) error { return l.ml.Leave(timeout) }

func (l *memberList) shutdown() error {
	err := l.ml.Shutdown()
	l.sending.Wait()
	return err
}

// delegate is called by memberlist while it holds locks and waits, so it only takes notes
// and passes on.
type delegate struct {
	g *Gossip
	l *memberList
}

func (d *delegate) NodeMeta(int) []byte             { return []byte(*d.l.note.Load()) }
func (d *delegate) GetBroadcasts(_, _ int) [][]byte { return nil }

func (d *delegate) NotifyMsg(b []byte) {
	if len(b) > 0 && kind(b[0]) != kindMark {
		d.g.enqueue(kind(b[0]), b[1:])
	}
}

func (d *delegate) LocalState(bool) []byte { return d.g.handler.State() }

func (d *delegate) MergeRemoteState(b []byte, _ bool) {
	if len(b) > 0 { // agents have none
		d.g.enqueue(kindState, b)
	}
}

// NotifyJoin also comes when a member's address has changed.
func (d *delegate) NotifyJoin(n *memberlist.Node) {
	d.l.mu.Lock()
	d.l.here[n.Name] = *n
	d.l.mu.Unlock()
	d.g.regain(n.Name)
	d.g.notice()
}

func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.NotifyJoin(n) }

func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.l.mu.Lock()
	delete(d.l.here, n.Name)
	d.l.mu.Unlock()
	d.g.lose(n.Name, n.Address())
	d.g.notice()
}

// logWriter passes memberlist's log on for debugging. Two things it says aloud, at most
// once a minute: that messages cannot be decrypted, so somebody has the wrong key, and
// that two routers have one name.
type logWriter struct {
	log  *slog.Logger
	said atomic.Int64 // when, in seconds
}

func (w *logWriter) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	w.log.Debug("memberlist", "line", line)
	switch {
	case strings.Contains(line, "crypt"):
		w.warn("a router with another gossip key was refused", line)
	case strings.Contains(line, "Conflicting address"):
		w.warn("two routers have one name, or one has moved", line)
	}
	return len(p), nil
}

func (w *logWriter) warn(what, line string) {
	now := time.Now().Unix()
	if said := w.said.Load(); now-said >= 60 && w.said.CompareAndSwap(said, now) {
		w.log.Warn(what, "line", line)
	}
}
