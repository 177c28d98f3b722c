package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Event is one message of /api/v1/events. What changes rarely is asked for when
// Overview.Digest and Overview.ChangesSeq say that it has.
type Event struct {
	Overview Overview `json:"overview"`
	Servers  Servers  `json:"servers"`
	HotKeys  *HotKeys `json:"hotkeys"` // null if keys are not counted
	Handover Handover `json:"handover"`
	Routers  *Routers `json:"routers"` // null if servers are not watched
	// Slow is the latest slow requests; null if none is slow.
	Slow  *SlowRequests `json:"slow"`
	Error string        `json:"error,omitempty"`
}

const (
	// eventEvery is the time between two messages; one that a change has caused comes sooner,
	// but not before eventGap.
	eventEvery, eventGap = time.Second, 250 * time.Millisecond
	// maxListeners is how many may listen.
	maxListeners = 64
	// eventTimeout is how long a listener may take to take a message.
	eventTimeout = 5 * time.Second
	// eventServers, eventHotKeys and eventSlow are how many of them a message has.
	eventServers, eventHotKeys, eventSlow = 50, 12, 8
)

// broadcast makes messages while somebody listens. One goroutine makes them for all. Any
// goroutine may use it.
type broadcast struct {
	make func(ctx context.Context) []byte
	// news returns what is closed when a message should be made soon.
	news func() <-chan struct{}

	mu        sync.Mutex
	listeners map[chan []byte]bool // guarded by mu, as is all below
	stop      context.CancelFunc   // of the goroutine; nil while there is none
	last      []byte               // message of the goroutine
	closed    bool
	running   sync.WaitGroup
}

var (
	errTooMany = errors.New("too many listen already")
	errClosing = errors.New("the router stops")
)

// listen returns a channel on which the newest message is. It is closed when there will be
// no more. Who listens has to leave.
func (b *broadcast) listen() (chan []byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, errClosing
	case len(b.listeners) >= maxListeners:
		return nil, errTooMany
	}
	c := make(chan []byte, 1)
	if b.listeners == nil {
		b.listeners = make(map[chan []byte]bool)
	}
	b.listeners[c] = true
	switch {
	case b.stop == nil:
		ctx, stop := context.WithCancel(context.Background())
		b.stop = stop
		b.running.Go(func() { b.run(ctx) })
	case b.last != nil:
		c <- b.last
	}
	return c, nil
}

// leave ends listening. The last one stops the goroutine.
func (b *broadcast) leave(c chan []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, c)
	if len(b.listeners) == 0 && b.stop != nil {
		b.stop()
		b.stop, b.last = nil, nil
	}
}

// run makes a message at once and then each second.
func (b *broadcast) run(ctx context.Context) {
	t := time.NewTicker(eventEvery)
	defer t.Stop()
	for {
		news, began := b.news(), time.Now()
		message := b.make(ctx)
		b.send(ctx, message)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-news:
			select {
			case <-ctx.Done():
				return
			case <-time.After(eventGap - time.Since(began)):
			}
		}
	}
}

// send leaves a message for everybody. Who has not taken the one before gets the new one in
// its place: nobody is waited for.
func (b *broadcast) send(ctx context.Context, message []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return // another goroutine has taken over, or nobody listens
	}
	b.last = message
	for c := range b.listeners {
		select {
		case <-c:
		default:
		}
		c <- message // only send writes, so there is room
	}
}

// close ends all listening and returns when the goroutine has ended.
func (b *broadcast) close() {
	b.mu.Lock()
	b.closed = true
	if b.stop != nil {
		b.stop()
	}
	for c := range b.listeners {
		close(c)
	}
	clear(b.listeners)
	b.mu.Unlock()
	b.running.Wait()
}

// event makes a message.
func (s *Server) event(ctx context.Context) []byte {
	var e Event
	if w, err := s.sampler.window(ctx); err != nil {
		e.Error = err.Error()
	} else {
		e = s.eventOf(w)
	}
	var b bytes.Buffer
	b.WriteString("data: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("bug: " + err.Error())
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func (s *Server) eventOf(w window) Event {
	f := newSurvey(w, s.cfg.Membership)
	e := Event{Servers: f.top(eventServers), Handover: s.handover(f)}
	if s.cfg.Membership != nil {
		r := s.routersOf()
		e.Routers = &r
	}
	if s.cfg.HotKeys != nil {
		if report := s.cfg.HotKeys(eventHotKeys); report != nil {
			h := hotKeysOf(report, w.to.table)
			e.HotKeys = &h
		}
	}
	if s.cfg.Slow != nil {
		slow := s.slowOf(w, eventSlow)
		e.Slow = &slow
	}
	e.Overview = s.overview(f, e.Routers)
	return e
}

// events answers GET /api/v1/events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	c, err := s.broadcast.listen()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.broadcast.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	conn := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case message, open := <-c:
			if !open {
				return
			}
			conn.SetWriteDeadline(time.Now().Add(eventTimeout)) // what cannot be written ends it anyway
			if _, err := w.Write(message); err != nil || conn.Flush() != nil {
				return
			}
		}
	}
}
