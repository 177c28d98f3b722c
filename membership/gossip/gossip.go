// Package gossip carries messages between routers: who is there, the full state of each
// when two meet, and small messages to all. What the messages mean it does not know.
//
// Delivery is best effort. Whatever must arrive has to be part of the full state, which
// any two routers exchange when they meet and every so often, or be said repeatedly.
//
// The work is done by HashiCorp's memberlist (SWIM with Lifeguard), which only
// memberlist.go sees. Its broadcast queue is not used, as it can lose messages of equal
// length; messages go straight to each member.
package gossip

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Handler is what the messages are for. Its methods may be called at the same time from
// several goroutines, and should return soon.
type Handler interface {
	// State returns the full state for another router. The slice is not changed.
	State() []byte
	// Merge takes in another router's full state, or a message that it sent.
	Merge(b []byte)
	// Hint takes in a hint that a router sent. It may be false, late, or come twice.
	Hint(b []byte)
	// Announce takes in an announcement of servers.
	Announce(b []byte)
}

// Config says who we are and whom to ask for the others.
type Config struct {
	// Name is this router's name, unique among the routers.
	Name string
	// Cluster keeps the routers of one fleet apart from those of another one that happen
	// to reach it, by reused addresses for example.
	Cluster string
	// Bind is the host:port for TCP and UDP; port 0 takes a free one. An empty one means
	// 127.0.0.1:11313.
	Bind string
	// Advertise is the host:port that others are told, if it is not Bind.
	Advertise string
	// Note is what others are told beside the name and address, at most 255 bytes; see
	// [Gossip.SetNote].
	Note string
	// Join holds addresses of some other routers; a name is resolved each time.
	Join []string
	// Keys encrypt all messages, if there are any: 16, 24 or 32 bytes each. The first one
	// encrypts, all of them decrypt.
	Keys [][]byte
	// Rejoin is the mean time between attempts to reach routers that are not there;
	// default 30 s.
	Rejoin time.Duration
	// Log gets changes of state; nil means slog.Default().
	Log *slog.Logger
	// fast makes failures be found sooner, for tests.
	fast bool
}

func (c Config) withDefaults() Config {
	c.Bind = cmp.Or(c.Bind, "127.0.0.1:11313")
	c.Rejoin = cmp.Or(c.Rejoin, 30*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Member is a router that is there.
type Member struct {
	Name string
	// Address is its host:port for gossip.
	Address string
	// Note is what it tells beside.
	Note string
}

// Stats counts messages.
type Stats struct {
	// Sent and Received count messages, BytesSent their payload to all members.
	Sent, Received, BytesSent uint64
	// Dropped counts those received faster than they were taken in.
	Dropped uint64
	// Health is how much this router has reason to distrust itself: 0 is none, from 4 on
	// it had better not judge others.
	Health int
}

// kind is the first byte of a message.
type kind byte

const (
	kindMark     kind = 0 // from ourselves: what was received in joining comes before it
	kindState    kind = 1
	kindHint     kind = 2
	kindAnnounce kind = 3
)

// packet is a message on its way in.
type packet struct {
	kind  kind
	body  []byte
	taken chan struct{} // of a mark: is closed in its turn
}

// maxWaiting is how many received messages may wait.
const maxWaiting = 256

// Gossip is this router's part in the exchange. Any goroutine may use it.
type Gossip struct {
	cfg     Config
	handler Handler
	list    atomic.Pointer[memberList] // nil while paused
	in      chan packet
	changed chan struct{}
	again   chan struct{} // to look for others at once
	joined  chan struct{} // closed when the first attempt to join is over
	cancel  context.CancelFunc
	done    sync.WaitGroup

	address string     // that others reach us at
	bound   string     // as Config.Bind, with the port that was taken
	pausing sync.Mutex // held while that begins or ends

	mu     sync.Mutex
	known  map[string]time.Time // guarded by mu: addresses of members, and when last seen
	here   map[string]Member    // guarded by mu: as last logged
	lost   map[string]*lost     // guarded by mu: by name
	stats  Stats                // guarded by mu
	closed bool                 // guarded by mu
}

// Start begins to gossip. That no other router answers is no error: this one starts
// alone, says so, and keeps trying.
func Start(c Config, h Handler) (*Gossip, error) {
	c = c.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gossip{
		cfg: c, handler: h, cancel: cancel,
		in: make(chan packet, maxWaiting), changed: make(chan struct{}, 1), joined: make(chan struct{}),
		again: make(chan struct{}, 1),
		known: map[string]time.Time{}, here: map[string]Member{}, lost: map[string]*lost{},
	}
	list, err := newMemberList(c, g)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start gossip on %s: %w", c.Bind, err)
	}
	g.list.Store(list)
	g.address, g.bound = list.self.Address, bound(c, list.self.Address)
	g.done.Go(func() { g.receive(ctx) })
	g.done.Go(func() { g.watch(ctx) })
	g.done.Go(func() { g.rejoin(ctx) })
	g.done.Go(func() { g.knock(ctx) })
	return g, nil
}

// Address returns the host:port that others reach us at.
func (g *Gossip) Address() string { return g.address }

// Joined is closed when the first attempt to reach other routers is over, and their states
// have been given to Merge if there are any.
func (g *Gossip) Joined() <-chan struct{} { return g.joined }

// Members returns the routers that are there, this one included, sorted by name.
func (g *Gossip) Members() []Member {
	m := g.list.Load().members()
	slices.SortFunc(m, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return m
}

// Stats returns the counters.
func (g *Gossip) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Health = g.list.Load().health()
	return s
}

// Send sends a message to all other members, where Merge takes it in.
func (g *Gossip) Send(b []byte) { g.send(kindState, b) }

// SendHint sends a hint to all other members.
func (g *Gossip) SendHint(b []byte) { g.send(kindHint, b) }

// SendAnnounce sends an announcement of servers to all other members. It is to be repeated.
func (g *Gossip) SendAnnounce(b []byte) { g.send(kindAnnounce, b) }

func (g *Gossip) send(k kind, b []byte) {
	msg := append([]byte{byte(k)}, b...)
	n := g.list.Load().send(msg)
	g.mu.Lock()
	g.stats.Sent += uint64(n)
	g.stats.BytesSent += uint64(n * len(msg))
	g.mu.Unlock()
}

// SetKeys changes the keys; see [Config.Keys]. To rotate, add the new key behind the old
// one at all routers, then put it first, then drop the old one.
func (g *Gossip) SetKeys(keys [][]byte) error {
	g.pausing.Lock()
	defer g.pausing.Unlock()
	if err := g.list.Load().setKeys(keys); err != nil {
		return fmt.Errorf("cannot change the gossip keys: %w", err)
	}
	g.mu.Lock()
	g.cfg.Keys = keys
	g.mu.Unlock()
	return nil
}

// SetNote changes what others are told beside the name and address. They learn of it
// within a second or so.
func (g *Gossip) SetNote(note string) error {
	g.pausing.Lock()
	defer g.pausing.Unlock()
	if err := g.list.Load().setNote(note); err != nil {
		return fmt.Errorf("cannot change what is told to the others: %w", err)
	}
	g.mu.Lock()
	g.cfg.Note = note
	g.mu.Unlock()
	return nil
}

// Close says good-bye to the others and returns when nothing runs any more, or with the
// context's error when it is over before. Closing twice is harmless.
func (g *Gossip) Close(ctx context.Context) error {
	if !g.close() {
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		// Nobody may be left to hear the good-bye; who does not will find out.
		err := g.Pause()
		g.done.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close begins to close, and reports false if that was done before.
func (g *Gossip) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.closed
	g.closed = true
	g.cancel()
	return first
}

// crash ends without a good-bye, for tests.
func (g *Gossip) crash() {
	g.close()
	g.list.Load().shutdown()
	g.done.Wait()
}

// enqueue takes in a message without waiting: the sender repeats what matters.
func (g *Gossip) enqueue(k kind, b []byte) {
	p := packet{kind: k, body: slices.Clone(b)}
	select {
	case g.in <- p:
	default:
		g.mu.Lock()
		g.stats.Dropped++
		g.mu.Unlock()
	}
}

// mark closes a channel when what was received before has been taken in.
func (g *Gossip) mark(ctx context.Context, taken chan struct{}) {
	select {
	case g.in <- packet{kind: kindMark, taken: taken}:
	case <-ctx.Done():
	}
}

func (g *Gossip) receive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-g.in:
			g.mu.Lock()
			g.stats.Received++
			g.mu.Unlock()
			switch p.kind {
			case kindMark:
				close(p.taken)
			case kindState:
				g.handler.Merge(p.body)
			case kindHint:
				g.handler.Hint(p.body)
			case kindAnnounce:
				g.handler.Announce(p.body)
			}
		}
	}
}

// notice tells watch that a member came or went.
func (g *Gossip) notice() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// watch logs who comes and goes. It reads the state again at each change, so it does not
// matter that changes may merge.
func (g *Gossip) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.changed:
			if g.list.Load() != nil { // those whom this one leaves are not gone
				g.compare(g.Members())
			}
		}
	}
}

func (g *Gossip) compare(now []Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	here := map[string]Member{}
	for _, m := range now {
		here[m.Name] = m
		g.known[m.Address] = time.Now()
		if _, ok := g.here[m.Name]; !ok && m.Name != g.cfg.Name {
			g.cfg.Log.Info("router joined", "router", m.Name, "addr", m.Address)
		}
	}
	for name, m := range g.here {
		if _, ok := here[name]; !ok && name != g.cfg.Name {
			g.cfg.Log.Warn("router gone", "router", name, "addr", m.Address)
		}
	}
	g.here = here
}

// jitter returns d, half of it more or less.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
