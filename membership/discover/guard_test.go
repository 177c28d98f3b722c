package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func list(names ...string) []Server {
	var l []Server
	for _, n := range names {
		l = append(l, Server{n, n + ":1", 1})
	}
	return l
}

func many(n int) []Server {
	var l []Server
	for i := range n {
		l = append(l, Server{fmt.Sprintf("s%05d", i), "h:1", 1})
	}
	return l
}

func TestGuard(t *testing.T) {
	g := &Guard{Max: 5}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := func(after time.Duration, answer, want []Server, reason error) {
		t.Helper()
		now = now.Add(after)
		got, err := g.Judge(answer, now)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, reason) {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	s := time.Second
	f(0, nil, nil, ErrEmpty)
	f(s, list("c", "a", "b"), list("a", "b", "c"), nil)
	f(s, nil, list("a", "b", "c"), ErrEmpty)
	f(s, list("a", "b", "c", "d"), list("a", "b", "c", "d"), nil)
	f(s, many(6), list("a", "b", "c", "d"), ErrTooMany)
	// A removal takes three equal answers over 30 s; what is new is taken at once.
	f(s, list("a", "b", "e"), list("a", "b", "c", "d", "e"), ErrUnconfirmed)
	f(10*s, list("a", "b", "e"), list("a", "b", "c", "d", "e"), ErrUnconfirmed)
	f(10*s, list("a", "b", "e"), list("a", "b", "c", "d", "e"), ErrUnconfirmed)
	f(10*s, list("a", "b", "e"), list("a", "b", "e"), nil)
	// Different answers do not confirm each other, nor does time alone.
	f(s, list("a", "b"), list("a", "b", "e"), ErrUnconfirmed)
	f(20*s, list("a"), list("a", "b", "e"), ErrUnconfirmed)
	f(20*s, list("a", "b"), list("a", "b", "e"), ErrUnconfirmed)
	f(40*s, list("a", "b"), list("a", "b", "e"), ErrUnconfirmed)
	f(s, list("a", "b"), list("a", "b"), nil)
}

func TestTrustedGuard(t *testing.T) {
	g := &Guard{Trusted: true}
	now := time.Now()
	f := func(answer, want []Server, reason error) {
		t.Helper()
		got, err := g.Judge(answer, now)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, reason) {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	f(list("a", "b", "c", "d"), list("a", "b", "c", "d"), nil)
	f(list("a", "b"), list("a", "b"), nil)
	f(list("z"), list("a", "b", "z"), ErrUnconfirmed)
	f(nil, list("a", "b", "z"), ErrEmpty)
}

// TestNeverEmpty: once there was a server, no sequence of answers leaves none.
func TestNeverEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Guard{Trusted: rapid.Bool().Draw(t, "trusted")}
		now := time.Now()
		g.Judge(list("a"), now)
		for range rapid.IntRange(1, 40).Draw(t, "answers") {
			names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4).Draw(t, "answer")
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * time.Second)
			got, err := g.Judge(list(names...), now)
			if len(got) == 0 {
				t.Fatal("no server left")
			}
			if err == nil && len(missing(got, sorted(list(names...)))) > 0 {
				t.Fatal("an answer was taken and is not in force")
			}
		}
	})
}

// script is a source that gives one answer after the other, the last one for ever.
type script struct {
	answers []Answer
	errs    []error
	looks   []time.Time
}

func (s *script) Look(context.Context) (Answer, error) {
	i := min(len(s.looks), len(s.answers)-1)
	s.looks = append(s.looks, time.Now())
	return s.answers[i], s.errs[i]
}

func (s *script) add(a Answer, err error) *script {
	s.answers, s.errs = append(s.answers, a), append(s.errs, err)
	return s
}

// TestWatcher: it keeps to the time that the source says, within bounds and with jitter,
// keeps the last good list, and says so once.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("no answer")
		s := (&script{}).add(Answer{list("a", "b"), time.Minute}, nil).add(Answer{}, bad).add(Answer{}, bad).
			add(Answer{TTL: time.Nanosecond}, nil).add(Answer{Servers: list("a", "b", "c")}, nil)
		var log bytes.Buffer
		changes := 0
		w := &Watcher{Source: s, Name: "test", Log: slog.New(slog.NewTextHandler(&log, nil)), Changed: func() { changes++ }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(list("a", "b", "c"), w.List()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if changes != 2 {
			t.Errorf("%d changes", changes)
		}
		for i, want := range []time.Duration{60, 10, 10, 5, 10, 10} {
			want *= time.Second
			got := s.looks[i+1].Sub(s.looks[i])
			if got < want*4/5 || got > want*6/5+1 {
				t.Errorf("pause %d was %v, want %v, a fifth more or less", i, got, want)
			}
		}
		st := w.Stats()
		if st.Failures != 2 || st.Refusals != 1 || st.Stale {
			t.Errorf("%+v", st)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d log lines, want one for the failures, one for the empty answer, one for the end:\n%s", n, &log)
		}
		cancel()
		<-done
	})
}

// TestAgain: a change that is known of is seen at once.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&script{}).add(Answer{Servers: list("a")}, nil).add(Answer{Servers: list("a", "b")}, nil)
		w := &Watcher{Source: s, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx)
		synctest.Wait()
		w.Again()
		synctest.Wait()
		if len(w.List()) != 2 {
			t.Errorf("list %v", w.List())
		}
	})
}

// TestNothingAtTheStart: a source that never answered yields no list, and says so.
func TestNothingAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watcher{Source: (&script{}).add(Answer{}, errors.New("down")), Log: slog.New(slog.DiscardHandler)}
		w.Look(t.Context())
		if w.List() != nil || !w.Stats().Stale {
			t.Errorf("list %v, %+v", w.List(), w.Stats())
		}
	})
}
