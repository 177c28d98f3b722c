//go:build linux

package fleet

import (
	"fmt"
	"strings"
	"time"
)

// Event is one line of a router's log.
type Event struct {
	At      time.Time // by the router's clock, to the millisecond
	Message string
	Fields  map[string]string
}

// Change is a server's way into the placement, or out of it, as one router carried it out.
type Change struct {
	At     time.Time
	Server string
	Placed bool
}

// note keeps a line of the log.
func (r *Router) note(line string) {
	if w := r.fleet.config.Logs; w != nil {
		fmt.Fprintln(w, r.Name, line)
	}
	e, ok := parseEvent(line)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events are those with the message that came since a moment.
func (r *Router) Events(message string, since time.Time) (all []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Message == message && !e.At.Before(since) {
			all = append(all, e)
		}
	}
	return all
}

// Changes are the changes of placement that the router has made since a moment.
func (r *Router) Changes(since time.Time) (all []Change) {
	for _, e := range r.Events("server status", since) {
		if from, to := placed(e.Fields["from"]), placed(e.Fields["to"]); from != to {
			all = append(all, Change{e.At, e.Fields["server"], to})
		}
	}
	return all
}

// Out are the servers that the router has moved the keys of, in no order.
func (r *Router) Out() (all []string) {
	last := map[string]bool{}
	for _, c := range r.Changes(time.Time{}) {
		last[c.Server] = c.Placed
	}
	for server, placed := range last {
		if !placed {
			all = append(all, server)
		}
	}
	return all
}

// MostChanges is the most changes of placement that any router made since a moment.
func (f *Fleet) MostChanges(since time.Time) (most int) {
	for _, r := range f.Routers {
		most = max(most, len(r.Changes(since)))
	}
	return most
}

// ChangedAt says when each router made the given change for the first time since a moment, the zero
// time for those that did not.
func (f *Fleet) ChangedAt(server string, placed bool, since time.Time) []time.Time {
	at := make([]time.Time, len(f.Routers))
	for i, r := range f.Routers {
		for _, c := range r.Changes(since) {
			if c.Server == server && c.Placed == placed && at[i].IsZero() {
				at[i] = c.At
			}
		}
	}
	return at
}

// placed reports whether a server of this status holds keys.
func placed(status string) bool { return status == "in" || status == "away" }

// parseEvent reads a line as log/slog's text handler writes it.
func parseEvent(line string) (Event, bool) {
	e := Event{Fields: map[string]string{}}
	for line != "" {
		var name, value string
		if name, line, _ = strings.Cut(line, "="); strings.ContainsAny(name, " \"") {
			return e, false
		}
		value, line = cutValue(line)
		e.Fields[name] = value
	}
	at, err := time.Parse(time.RFC3339Nano, e.Fields["time"])
	e.At, e.Message = at, e.Fields["msg"]
	return e, err == nil
}

// cutValue cuts off a value, quoted or not, and the space behind it. What is escaped within quotes
// stays so.
func cutValue(line string) (value, rest string) {
	if !strings.HasPrefix(line, `"`) {
		value, rest, _ = strings.Cut(line, " ")
		return value, rest
	}
	end := 1
	for end < len(line) && line[end] != '"' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	return line[1:min(end, len(line))], strings.TrimPrefix(line[min(end+1, len(line)):], " ")
}
