package admin

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Changes is what /api/v1/changes says: what has changed lately, the newest first.
type Changes struct {
	// Seq counts all changes since the start; it tells whether there are new ones.
	Seq     uint64   `json:"seq"`
	Changes []Change `json:"changes"`
}

// Change is one change of a state: of a server, the routers, the placement, the
// configuration.
type Change struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Level is info for what is as it should be, else warn or error.
	Level string `json:"level"`
	// What is changed, as the log says it.
	What string `json:"what"`
	// Server, From, To and Reason are there where they apply.
	Server string `json:"server,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Details are whatever else the log says.
	Details map[string]string `json:"details,omitempty"`
}

// maxChanges is how many are kept.
const maxChanges = 100

// History remembers the last changes. As the log has one line for each change of a state and
// none for requests, the lines of the loggers that it makes are the changes. Any goroutine
// may use it.
type History struct {
	mu   sync.Mutex
	seq  uint64             // guarded by mu, as is all below
	ring [maxChanges]Change // change n is at n % maxChanges
	news chan struct{}      // closed at the next change
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{news: make(chan struct{})} }

// Logger returns a logger that logs as another does, and remembers.
func (h *History) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(&remembering{Handler: l.Handler(), history: h})
}

// Changes returns what is remembered.
func (h *History) Changes() Changes {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(h.seq, maxChanges)
	all := Changes{Seq: h.seq, Changes: make([]Change, 0, n)}
	for i := range n {
		all.Changes = append(all.Changes, h.ring[(h.seq-i)%maxChanges])
	}
	return all
}

// since returns how many changes there were, and a channel that is closed at the next one.
func (h *History) since() (seq uint64, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seq, h.news
}

func (h *History) add(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	c.Seq = h.seq
	h.ring[h.seq%maxChanges] = c
	h.stirLocked()
}

// Stir has those who follow the events told soon of what is no change to be remembered.
func (h *History) Stir() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stirLocked()
}

func (h *History) stirLocked() {
	close(h.news)
	h.news = make(chan struct{})
}

// remembering is a slog.Handler that remembers what it handles. Its groups are not
// remembered: nobody logs a change in one.
type remembering struct {
	slog.Handler
	history *History
	attrs   []slog.Attr
}

// Handle implements slog.Handler.
func (r *remembering) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level >= slog.LevelInfo {
		c := Change{At: rec.Time.UTC().Round(time.Millisecond), Level: levelText(rec.Level), What: rec.Message}
		for _, a := range r.attrs {
			c.note(a)
		}
		rec.Attrs(func(a slog.Attr) bool { c.note(a); return true })
		r.history.add(c)
	}
	return r.Handler.Handle(ctx, rec)
}

// Enabled implements slog.Handler: changes are remembered even where they are not logged.
func (r *remembering) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || r.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (r *remembering) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &remembering{r.Handler.WithAttrs(attrs), r.history, append(r.attrs[:len(r.attrs):len(r.attrs)], attrs...)}
}

// WithGroup implements slog.Handler.
func (r *remembering) WithGroup(name string) slog.Handler {
	return &remembering{r.Handler.WithGroup(name), r.history, r.attrs}
}

func levelText(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	}
	return "info"
}

// note puts an attribute in its place.
func (c *Change) note(a slog.Attr) {
	text := a.Value.String()
	switch a.Key {
	case "server":
		c.Server = text
	case "from":
		c.From = text
	case "to":
		c.To = text
	case "reason":
		c.Reason = text
	default:
		if c.Details == nil {
			c.Details = make(map[string]string)
		}
		c.Details[a.Key] = text
	}
}
