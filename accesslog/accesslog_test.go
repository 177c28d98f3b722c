package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/memproto"
	"cacherouter/router"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record returns a record of a get of a key.
func record(key string) router.Record {
	return router.Record{
		Sampled: true, At: time.Unix(1000, 0).UTC(), Client: "tcp:127.0.0.1:5", Listener: "127.0.0.1:1", Verb: memproto.Get, Key: key, Keys: 1,
		Server: "a", Outcome: memproto.Hit, Bytes: 7, Sent: time.Millisecond, First: 2 * time.Millisecond, Answered: 3 * time.Millisecond, Took: 4 * time.Millisecond,
	}
}

// kept is a sink that keeps keys, and may be slow to take them.
type kept struct {
	keys []string
	wait time.Duration
}

func (k *kept) Take(records []router.Record) {
	time.Sleep(k.wait) // on the clock of the test
	for i := range records {
		k.keys = append(k.keys, records[i].Key)
	}
}

// A queue loses what it has no room for, and nothing else, and what waits at the end is taken.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b kept
		q := NewQueue(&a, &b)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		put := func(from, n int) {
			for i := range n {
				r := record(strconv.Itoa(from + i))
				q.Put(&r)
			}
		}
		put(0, 3*batch)
		time.Sleep(every)
		synctest.Wait()
		if len(a.keys) != 3*batch || len(b.keys) != 3*batch || a.keys[3*batch-1] != strconv.Itoa(3*batch-1) {
			t.Errorf("%d and %d records were taken", len(a.keys), len(b.keys))
		}
		b.wait = time.Hour // so that the first batch is on its way for long
		put(0, 1)
		time.Sleep(every)
		synctest.Wait()
		put(0, queued+7)
		if q.Lost() != 7 {
			t.Errorf("%d were lost of 7 too many", q.Lost())
		}
		cancel()
		<-done
		if n := 3*batch + 1 + queued; len(b.keys) != n {
			t.Errorf("%d records were taken, want %d", len(b.keys), n)
		}
	})
}

// open opens a log of requests for a test.
func open(t *testing.T, file string, log io.Writer) *Lines {
	t.Helper()
	l, err := OpenLines(file, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// read returns the lines of a file.
func read(t *testing.T, file string) (all []Entry) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

func TestLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requests")
	l := open(t, file, io.Discard)
	hit, lost, near := record("k"), record(""), record("near")
	lost.Gone, lost.Answered, lost.Outcome = true, 0, memproto.Done
	near.Way, near.Server, near.Sent, near.First, near.Answered = router.Near, "", 0, 0, 0
	near.Pool = "users"
	unsampled := record("slow")
	unsampled.Sampled = false
	l.Take([]router.Record{hit, unsampled, lost, near})
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"time":"1970-01-01T00:16:40Z","client":"tcp:127.0.0.1:5","listener":"127.0.0.1:1","verb":"get",`
	want := head + `"key":"k","keys":1,"server":"a","decided":"home","outcome":"hit","bytes":7,"seconds":0.004,"sent":0.001,"first":0.002,"answered":0.003}` + "\n" +
		head + `"key":"","keys":1,"server":"a","decided":"home","outcome":"gone","bytes":7,"seconds":0.004,"sent":0.001,"first":null,"answered":null}` + "\n" +
		head + `"key":"near","keys":1,"pool":"users","server":"","decided":"near_cache","outcome":"hit","bytes":7,"seconds":0.004,"sent":null,"first":null,"answered":0}` + "\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	if l.Written() != 3 || l.Lost() != 0 {
		t.Errorf("%d written, %d lost", l.Written(), l.Lost())
	}
}

// Whatever bytes a key has, it is one line, and can be told from others.
func TestHostileKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requests")
	l := open(t, file, io.Discard)
	keys := []string{"a\nb", `a\nb`, "\"},{\"", "\x00\xff\xfe", "<script>", "\u2028", "é", strings.Repeat("\x01", 250)}
	for _, k := range keys {
		l.Take([]router.Record{record(k)})
	}
	for i, e := range read(t, file) {
		if got, err := strconv.Unquote(`"` + e.Key + `"`); err != nil || got != keys[i] {
			t.Errorf("%q is written as %s: %v", keys[i], e.Key, err)
		}
	}
	if n := len(read(t, file)); n != len(keys) {
		t.Errorf("%d lines for %d keys", n, len(keys))
	}
}

// A log that is moved away goes on in a new file once that is asked for, and in the old one
// while the new one cannot be opened.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	file, old := filepath.Join(dir, "requests"), filepath.Join(dir, "requests.1")
	l := open(t, file, io.Discard)
	write := func(key string) { l.Take([]router.Record{record(key)}) }
	write("a")
	if err := os.Rename(file, old); err != nil {
		t.Fatal(err)
	}
	write("b")
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a folder is opened: %v", err)
	}
	write("c")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	write("d")
	if got := fmt.Sprintf("%d %d %s %d", len(read(t, old)), len(read(t, file)), read(t, file)[0].Key, l.Lost()); got != "3 1 d 0" {
		t.Errorf("got %s", got)
	}
}

// A reader that stops reading costs lines, which are counted, and no more than that: when it
// goes on every line is whole.
func TestStuckReader(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "requests")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if _, err := OpenLines(fifo, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("a pipe that nobody reads was opened")
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var log bytes.Buffer
	l := open(t, fifo, &log)
	many := make([]router.Record, batch)
	for i := range many {
		many[i] = record(strings.Repeat("k", 200))
	}
	l.Take(many) // 200 kB, and a pipe has room for 64 kB
	l.Take(many)
	took := l.Written() + l.Lost()
	if l.Lost() == 0 || took != 2*batch {
		t.Fatalf("%d written, %d lost", l.Written(), l.Lost())
	}
	lines := make(chan int)
	go func() {
		good := 0
		for r := bufio.NewScanner(reader); r.Scan(); {
			var e Entry
			if json.Unmarshal(r.Bytes(), &e) == nil {
				good++
			}
		}
		lines <- good
	}()
	for deadline := time.Now().Add(time.Minute); strings.Count(log.String(), "again") == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is written again")
		}
		l.Take(many[:1])
	}
	l.Close()
	if good := <-lines; good != int(l.Written()) {
		t.Errorf("%d lines are whole, and %d are said to be written", good, l.Written())
	}
	if n := strings.Count(log.String(), "lines are lost"); n != 1 {
		t.Errorf("that lines are lost is logged %d times", n)
	}
}

// The latest slow requests are remembered, and each is logged.
func TestSlow(t *testing.T) {
	var log bytes.Buffer
	s := NewSlow(3, slog.New(slog.NewTextHandler(&log, nil)))
	want := func(want string) {
		t.Helper()
		got := ""
		for _, e := range s.Last() {
			got += e.Key
		}
		if got != want {
			t.Errorf("remembers %q, want %q", got, want)
		}
	}
	want("")
	for _, k := range "abcde" {
		r := record(string(k))
		r.Slow = true
		s.Take([]router.Record{record("fast"), r})
		if k == 'b' {
			want("ba")
		}
	}
	want("edc")
	if n := strings.Count(log.String(), "slow request"); n != 5 || !strings.Contains(log.String(), "key=e") || !strings.Contains(log.String(), "took=4ms sent=1ms") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
