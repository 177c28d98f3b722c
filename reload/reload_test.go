package reload

import (
	"errors"
	"testing"
	"time"
)

func TestJournal(t *testing.T) {
	begin := time.Unix(1000, 0)
	j := NewJournal(begin)
	if s := j.State(); !s.At.IsZero() || !s.Loaded.Equal(begin) || len(s.Counts) != len(Outcomes()) {
		t.Errorf("it begins with %+v", s)
	}
	j.Note(&Report{Outcome: Applied, Upgrade: []string{"loops"}}, begin.Add(time.Minute))
	j.Note(new(Report).Fails(Invalid, errors.New("line 3")), begin.Add(time.Hour))
	s := j.State()
	if s.Outcome != Invalid || s.Error != "line 3" || !s.At.Equal(begin.Add(time.Hour)) {
		t.Errorf("the last one was %+v", s)
	}
	if !s.Loaded.Equal(begin.Add(time.Minute)) || len(s.Upgrade) != 1 {
		t.Errorf("a reload that changes nothing counts as one that does: %+v", s)
	}
	if s.Counts[Applied] != 1 || s.Counts[Invalid] != 1 || s.Counts[Refused] != 0 {
		t.Errorf("counted %v", s.Counts)
	}
}

func TestChangeAsText(t *testing.T) {
	f := func(c Change, want string) {
		t.Helper()
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(Change{Subject: "pool users", Change: "added"}, "pool users: added")
	f(Change{Subject: `route "u:"`, Change: "pool a, was pool b", Moved: 0.25}, `route "u:": pool a, was pool b (moves 25 % of its keys)`)
}
