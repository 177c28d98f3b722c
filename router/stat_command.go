package router

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"cacherouter/memproto"
)

// serveStats answers the stats command in the shapes that clients and exporters parse.
// What the servers know is asked of them and added up; what only the router knows is
// its own.
func (s *session) serveStats(r *memproto.Request) {
	args := r.Args()
	what, rest := memproto.NextWord(args)
	switch string(what) {
	case "", "items", "slabs", "sizes":
		s.fanStats(r, what)
	case "cachedump":
		s.cachedump(r, rest)
	case "settings":
		s.sayStats(s.front.settings())
	case "conns":
		s.connStats(r)
	case "reset":
		s.say("RESET")
	case "detail":
		s.statsDetail(rest)
	default:
		s.say(memproto.LineError)
	}
}

// stat is one line of a stats reply.
type stat struct{ name, value string }

func (s *session) sayStats(stats []stat) {
	for _, st := range stats {
		s.say("STAT " + st.name + " " + strings.ReplaceAll(st.value, " ", "_"))
	}
	s.say("END")
}

// statsDetail answers as a server that never counts by prefix.
func (s *session) statsDetail(args []byte) {
	switch word, _ := memproto.NextWord(args); string(word) {
	case "on", "off":
		s.say("OK")
	case "dump":
		s.say("END")
	default:
		s.say("CLIENT_ERROR usage: stats detail on|off|dump")
	}
}

// cachedump joins the items that the servers list.
func (s *session) cachedump(r *memproto.Request, args []byte) {
	id, rest := memproto.NextWord(args)
	limit, _ := memproto.NextWord(rest)
	if len(limit) == 0 {
		s.say("CLIENT_ERROR bad command line")
		return
	}
	class, ok := memproto.ParseUint(id)
	_, ok2 := memproto.ParseUint(limit)
	switch {
	case !ok || !ok2:
		s.say(memproto.LineBadFormat)
	case class >= 64:
		s.say("CLIENT_ERROR Illegal slab id")
	default:
		f := s.startFan(r)
		f.merge = mergeLines
		f.begin()
		f.ask(fmt.Appendf(nil, "stats cachedump %s %s\r\n", id, limit))
		f.arrived()
	}
}

// mergeLines joins the lines of all servers under one END.
func mergeLines(f *fan) {
	var b []byte
	for _, p := range f.parts {
		lines, whole := bytes.CutSuffix(p.reply, endLine)
		switch {
		case p.failed != 0:
		case !whole: // an error line, in place of all
			f.finish(p.reply)
			return
		default:
			b = append(b, lines...)
		}
	}
	f.finish(append(b, endLine...))
}

// fanStats asks the servers, and for plain stats the other loops, and adds up.
func (s *session) fanStats(r *memproto.Request, what []byte) {
	f := s.startFan(r)
	f.merge = func(f *fan) {
		var own []stat
		if len(what) == 0 {
			own = s.front.own(f.snapshots)
		}
		f.finish(mergeStats(own, f.parts))
	}
	f.begin()
	if len(what) == 0 {
		f.askLoops((*front).snapshot)
	}
	f.ask([]byte(strings.TrimSpace("stats "+string(what)) + "\r\n"))
	f.arrived()
}

// connStats lists the clients of all loops.
func (s *session) connStats(r *memproto.Request) {
	f := s.startFan(r)
	f.parts = nil
	f.merge = func(f *fan) {
		var b []byte
		n := 0 // of the connection, as one descriptor's number is as good as another
		for _, snap := range f.snapshots {
			for _, addr := range snap.Peers {
				n++
				b = fmt.Appendf(b, "STAT %d:addr %s\r\nSTAT %d:state conn_read\r\n", n, addr, n)
			}
		}
		f.finish(append(b, "END\r\n"...))
	}
	f.begin()
	f.askLoops((*front).peers)
	f.arrived()
}

// mergeStats adds up the numbers of all servers by name, in the order they first came;
// own lines come first and replace those of the same name.
func mergeStats(own []stat, parts []*fanPart) []byte {
	var b []byte
	known := make(map[string]bool)
	for _, st := range own {
		known[st.name] = true
		b = fmt.Appendf(b, "STAT %s %s\r\n", st.name, st.value)
	}
	sums := make(map[string]uint64)
	var order []string
	for _, p := range parts {
		if p.failed != 0 {
			continue // what it had brought before is not the whole
		}
		for line := range bytes.Lines(p.reply) {
			name, n, ok := numericStat(line)
			if !ok || known[name] {
				continue
			}
			if _, seen := sums[name]; !seen {
				order = append(order, name)
			}
			sums[name] = combine(name, sums[name], n)
		}
	}
	for _, name := range order {
		b = fmt.Appendf(b, "STAT %s %d\r\n", name, sums[name])
	}
	return append(b, "END\r\n"...)
}

func numericStat(line []byte) (name string, n uint64, ok bool) {
	f := bytes.Fields(line)
	if len(f) != 3 || string(f[0]) != "STAT" {
		return "", 0, false
	}
	n, err := strconv.ParseUint(string(f[2]), 10, 64)
	return string(f[1]), n, err == nil
}

// combine adds what can be added; ages and sizes of things are not, nor is whether
// something goes on, so the largest is told.
func combine(name string, a, b uint64) uint64 {
	last := name[strings.LastIndexByte(name, ':')+1:]
	switch {
	case strings.HasPrefix(last, "age"), last == "chunk_size", last == "chunks_per_page", last == "time_since_server",
		last == "hash_power_level", strings.HasSuffix(last, "_is_expanding"), strings.HasSuffix(last, "_running"):
		return max(a, b)
	}
	return a + b
}

func (w *worker) serversUp() (up int) {
	for _, s := range w.nodes {
		if s.Up() {
			up++
		}
	}
	return up
}

// settings tells the router's own settings.
func (f *front) settings() []stat {
	c, p := &f.r.cfg, &f.workers[0].p.cfg
	stats := []stat{
		{"maxconns", strconv.Itoa(c.MaxClients)},
		{"verbosity", "0"},
		{"num_threads", strconv.Itoa(c.Loops)},
		{"item_size_max", strconv.Itoa(f.parser.MaxValue)},
		{"flush_enabled", yesNo(f.mayFlush())},
		{"cas_enabled", "yes"},
		{"dump_enabled", "yes"},
		{"auth_enabled_ascii", "no"},
		{"binding_protocol", "auto-negotiate"},
	}
	if len(f.workers) > 1 { // each has settings of its own, and this has no place for that
		return stats
	}
	return append(stats,
		stat{"request_timeout_ms", strconv.FormatInt(p.Timeout.Milliseconds(), 10)},
		stat{"connect_timeout_ms", strconv.FormatInt(p.ConnectTimeout.Milliseconds(), 10)},
		stat{"bulk_size", strconv.Itoa(p.BulkSize)},
		stat{"miss_on_failure", yesNo(p.MissOnFailure)},
	)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
