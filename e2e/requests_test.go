package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// entry is what is read of a line of the log of requests.
type entry struct {
	Client, Listener, Verb, Key, Server, Decided, Outcome string
	Bytes                                                 int
	Seconds                                               float64
}

// startRecording starts a router that records single requests as the lines of a configuration say.
func startRecording(t *testing.T, lines string) (r *router, backend *memcachedtest.Server) {
	t.Helper()
	backend = memcachedtest.Start(t)
	file := configFile(t, []string{backend.Addr()}, "timeout: 15s", "connect_timeout: 15s")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(b, "\nlog:\n"+lines...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startServe(t, raceBinary, "--listen", "127.0.0.1:0", "--config", file), backend
}

// entries waits for n lines in a file and returns them.
func entries(t *testing.T, file string, n int) (all []entry) {
	t.Helper()
	waitFor(t, fmt.Sprint(n, " lines in ", file), func() error {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if got := strings.Count(string(b), "\n"); got < n {
			return fmt.Errorf("%d lines", got)
		}
		all = nil
		for line := range strings.Lines(string(b)) {
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			all = append(all, e)
		}
		return nil
	})
	return all
}

// Sampled requests are in the file, in a new one after it was renamed and the router told, and
// the last one too when it ends. Slow ones are in the log and can be asked for.
func TestRecordsOfRequests(t *testing.T) {
	dir := t.TempDir()
	file, old := filepath.Join(dir, "requests"), filepath.Join(dir, "requests.1")
	r, backend := startRecording(t, "  requests: {every: 1, file: "+file+"}\n  slow: {over: 1us, keep: 2}\n")
	c := connect(t, r.addr)
	c.mustSet(t, "user:1", "12345")
	c.mustGet(t, "user:1", "12345")
	c.mustMiss(t, "user:2")
	reply := len("VALUE user:1 0 5\r\n12345\r\nEND\r\n")
	want := []entry{
		{Verb: "set", Key: "user:1", Outcome: "stored", Bytes: len("STORED\r\n")},
		{Verb: "get", Key: "user:1", Outcome: "hit", Bytes: reply},
		{Verb: "get", Key: "user:2", Outcome: "miss", Bytes: len("END\r\n")},
	}
	for i, got := range entries(t, file, 3) {
		w := want[i]
		w.Client, w.Listener, w.Server, w.Decided, w.Seconds = "tcp:"+c.conn.LocalAddr().String(), r.addr, backend.Addr(), "home", got.Seconds
		if got != w || got.Seconds <= 0 {
			t.Errorf("line %d is %+v, want %+v", i, got, w)
		}
	}
	r.waitLog(`msg="slow request" .*verb=get key=user:2`)
	slow := api[struct {
		Over     float64 `json:"over_seconds"`
		Total    int
		Requests []entry
	}](r, "/api/v1/slow")
	if slow.Over != 1e-6 || slow.Total < 3 || len(slow.Requests) != 2 || slow.Requests[0].Key != "user:2" || slow.Requests[1].Outcome != "hit" {
		t.Errorf("slow are %+v", slow)
	}
	if err := os.Rename(file, old); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGHUP)
	r.waitLog("msg=reloaded")
	c.mustMiss(t, "last")
	c.conn.Close()
	r.stop()
	if got := entries(t, file, 1); len(got) != 1 || got[0].Key != "last" || len(entries(t, old, 3)) != 3 {
		t.Errorf("after the file was renamed: %+v", got)
	}
}

// Neither a collector of traces that takes connections and never answers, nor a reader of lines that does not read,
// keeps a client waiting or the router from ending.
func TestRecordsHoldUpNobody(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // what the system takes for it is never read
	fifo := filepath.Join(t.TempDir(), "requests")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	r, _ := startRecording(t, "  requests: {every: 1, file: "+fifo+"}\n  traces: {endpoint: \"http://"+ln.Addr().String()+"\"}\n")
	c := connect(t, r.addr)
	const many = 2000 // lines of which a pipe does not hold
	if err := c.send(strings.Repeat("get none\r\n", many)); err != nil {
		t.Fatal(err)
	}
	for range many {
		if line, err := c.line(); err != nil || line != "END" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	waitFor(t, "lines that are lost", func() error {
		_, text, err := r.http("/metrics")
		if strings.Contains(text, "cacherouter_request_log_unwritten_total 0\n") {
			return errors.New("none is")
		}
		return err
	})
	r.waitLog(`msg="the log of requests cannot be written: lines are lost"`)
	lines := bufio.NewScanner(reader)
	if !lines.Scan() || !json.Valid(lines.Bytes()) {
		t.Errorf("the first line is %q, %v", lines.Bytes(), lines.Err())
	}
	c.mustMiss(t, "more")
	r.stop()
}
