package walk

import (
	"fmt"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

func TestAFullServersRequestsWalkOn(t *testing.T) {
	w, err := New(Config{Names: []string{"a", "b", "c", "d"}, Targets: make([]string, 4), PerMille: 1250})
	if err != nil {
		t.Fatal(err)
	}
	order := []int{2, 0, 3, 1}
	var got []int
	for range 8 {
		server, _ := w.take(order)
		got = append(got, server)
	}
	// With the n-th a server may have ceil(1.25 n/4): 1, 1, 1, 2, 2, 2, 3, 3.
	if want := []int{2, 0, 3, 2, 0, 3, 2, 0}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, server := range got {
		w.give(server, nil)
	}
	if server, _ := w.take(order); server != 2 || w.all != 1 {
		t.Errorf("server %d when nothing else is in flight, %d are", server, w.all)
	}
}

func TestAWalkerKnowsNothingOfWhatItLeftElsewhere(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	w, err := New(Config{Names: []string{"a", "b"}, Targets: []string{servers[0].Addr(), servers[1].Addr()}, PerMille: 1250, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := func(want string, found bool) {
		t.Helper()
		got, hit, err := w.Get("k")
		if string(got) != want || hit != found || err != nil {
			t.Errorf("%q, hit %v, %v; want %q", got, hit, err, want)
		}
	}
	set := func(value string) {
		t.Helper()
		if err := w.Set("k", []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	set("old")
	f("old", true)
	home, c := w.take(w.order("k"))
	_, d := w.take(w.order("k"))
	f("", false) // the other has never seen it
	set("new")
	w.give(home, c)
	w.give(home, d)
	f("old", true)
	if err := w.Delete("k"); err != nil {
		t.Error(err)
	}
	f("", false)
}

func TestWhereNobodyCanWalk(t *testing.T) {
	for _, c := range []Config{
		{}, {Names: []string{"a"}, PerMille: 1250}, {Names: []string{"a"}, Targets: []string{"x"}, PerMille: 999},
		{Names: []string{"a", "a"}, Targets: []string{"x", "y"}, PerMille: 1250},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
