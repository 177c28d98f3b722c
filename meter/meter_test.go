package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cacherouter/balance"
	"cacherouter/internal/memcachedtest"
	"cacherouter/membership/probe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book notes what it is told.
type book struct {
	mu        sync.Mutex
	reports   map[string][]balance.Report
	forgotten []string
}

func (b *book) Report(server string, r balance.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reports == nil {
		b.reports = make(map[string][]balance.Report)
	}
	b.reports[server] = append(b.reports[server], r)
}

func (b *book) ForgetReports(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgotten = append(b.forgotten, server)
}

// take returns the reports of a server and forgets them.
func (b *book) take(server string) []balance.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reports[server]
	delete(b.reports, server)
	return r
}

// fleet answers for servers as the test says. A server that is not in it does not answer
// before the context ends.
type fleet struct {
	mu      sync.Mutex
	answers map[string]func(second int) string
	asked   map[string]int
	began   time.Time
}

func (f *fleet) Stats(ctx context.Context, address string) ([]byte, error) {
	f.mu.Lock()
	f.asked[address]++
	answer := f.answers[address]
	f.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []byte(answer(int(time.Since(f.began) / time.Second))), nil
}

// healthy is a server with 2 threads that answers so many requests a second, and is half busy.
func healthy(rate int) func(int) string {
	return func(second int) string {
		return fmt.Sprintf("STAT pid 1\r\nSTAT threads 2\r\nSTAT curr_connections 1\r\nSTAT max_connections 100\r\n"+
			"STAT rusage_user %d.5\r\nSTAT rusage_system 0.5\r\nSTAT cmd_get %d\r\nEND\r\n", second, second*rate)
	}
}

// run runs a meter for some time of the bubble, in which the servers may change.
func run(f *fleet, b *book, during func(wait func(time.Duration)), names ...string) (log string) {
	var out bytes.Buffer
	f.asked, f.began = make(map[string]int), time.Now()
	m := New(Config{
		Servers: func() (all []Server) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, n := range names {
				all = append(all, Server{n, n + ":1"})
			}
			return all
		},
		Asker: f, Sink: b,
		Log: slog.New(slog.NewTextHandler(&out, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	during(func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	})
	cancel()
	running.Wait()
	return out.String()
}

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := &fleet{answers: map[string]func(int) string{"a:1": healthy(1000), "b:1": healthy(3000)}}, new(book)
		log := run(f, b, func(wait func(time.Duration)) { wait(10*time.Second + time.Millisecond) }, "a", "b")
		for name, qps := range map[string]float64{"a": 1000, "b": 3000} {
			got := b.take(name)
			if len(got) != 5 || got[4] != (balance.Report{QPS: qps, Utilization: 0.5}) {
				t.Errorf("the reports of %s are %v", name, got)
			}
		}
		if log != "" || len(b.forgotten) > 0 {
			t.Errorf("of healthy servers %q is said, and %v forgotten", log, b.forgotten)
		}
	})
}

// What a server does not tell is said once, and it does not hold up the others.
func TestServersThatDoNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		less := func(name string) func(int) string {
			return func(second int) string {
				return strings.ReplaceAll(healthy(1000)(second), "STAT "+name, "STAT no_"+name)
			}
		}
		f := &fleet{answers: map[string]func(int) string{
			"good:1": healthy(1000), "noconns:1": less("max_connections"), "nogets:1": less("cmd_get"),
			"alien:1": func(int) string { return "ERROR\r\n" },
		}}
		b := new(book)
		log := run(f, b, func(wait func(time.Duration)) {
			wait(20*time.Second + time.Millisecond)
			f.mu.Lock()
			f.answers["dead:1"] = healthy(1000)
			f.mu.Unlock()
			wait(10 * time.Second)
		}, "good", "noconns", "nogets", "alien", "dead")
		for name, want := range map[string]int{"good": 15, "noconns": 15, "nogets": 0, "alien": 0} {
			if got := len(b.take(name)); got != want {
				t.Errorf("%s gave %d reports, want %d", name, got, want)
			}
		}
		if len(b.take("dead")) == 0 {
			t.Error("a server that answers at last gives no reports")
		}
		for _, name := range []string{"noconns", "nogets", "alien", "dead"} {
			if n := strings.Count(log, "level=WARN msg=\"server does not tell its load, or not all of it: reads are balanced by what the others tell\" server="+name+" "); n != 1 {
				t.Errorf("of %s is warned %d times: %s", name, n, log)
			}
		}
		if n := strings.Count(log, "\n"); n != 5 || !strings.Contains(log, "server tells its load\" server=dead") {
			t.Errorf("%d lines: %s", n, log)
		}
	})
}

// A server that was restarted is forgotten, an idle one is not, and one that is not among
// the servers any more is not asked.
func TestServersThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{answers: map[string]func(int) string{
			"new:1": func(second int) string {
				return strings.Replace(healthy(1000)(second), "pid 1", fmt.Sprint("pid ", second/10), 1)
			},
			"idle:1": healthy(0), "gone:1": healthy(1000), "other:1": healthy(0),
		}}
		b, names := new(book), []string{"new", "idle", "gone"}
		log := run(f, b, func(wait func(time.Duration)) {
			wait(5 * time.Second)
			f.mu.Lock()
			names[2] = "other"
			f.mu.Unlock()
			wait(10 * time.Second)
		}, names...)
		if log != "" || fmt.Sprint(b.forgotten) != "[new]" || len(b.take("idle")) > 0 || len(b.take("new")) != 6 {
			t.Errorf("%v forgotten; said: %s", b.forgotten, log)
		}
		if f.asked["gone:1"] != 3 {
			t.Errorf("a server that is gone was asked %d times", f.asked["gone:1"])
		}
	})
}

// Real servers report what they do, until they end.
func TestRealServers(t *testing.T) {
	s := memcachedtest.Start(t)
	b := new(book)
	m := New(Config{
		Every:   200 * time.Millisecond,
		Servers: func() []Server { return []Server{{"s", s.Addr()}} },
		Asker:   probe.TCP{}, Sink: b,
	})
	var running sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	running.Go(func() { m.Run(ctx) })
	conn, err := memcachedtest.Dial(s.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for len(b.take("s")) == 0 {
		if _, err := conn.Write([]byte("get k\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Fatal("no report comes")
		}
	}
	s.Stop()
	if _, err := (probe.TCP{}).Stats(ctx, s.Addr()); err == nil || errors.Is(err, ctx.Err()) {
		t.Errorf("a server that is gone is asked: %v", err)
	}
	cancel()
	running.Wait()
}
