package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cacherouter/internal/memcachedtest"
)

var update = flag.Bool("update", false, "fill the <? lines of cases with what memcached answers")

func TestCasesOnMemcached(t *testing.T) {
	addr := memcachedtest.Start(t, memcachedtest.Steady...).Addr()
	if *update {
		recordAll(t, addr)
		t.Skip("recorded; run again without -update")
	}
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	release, err := Release(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if !Holds(c.Variants, release) {
				t.Skipf("these are the bytes of memcached %s, here is %s", c.Variants, release)
			}
			if err := Flush(addr); err != nil {
				t.Fatal(err)
			}
			if err := Replay(addr, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// recordAll works on the files, not on the embedded copies.
func recordAll(t *testing.T, addr string) {
	t.Helper()
	names, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n<?") {
			continue
		}
		if err := Flush(addr); err != nil {
			t.Fatal(err)
		}
		recorded, err := Record(addr, filepath.Base(name), string(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(recorded), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRouterCasesReplaceByName(t *testing.T) {
	plain, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	router, err := RouterCases()
	if err != nil {
		t.Fatal(err)
	}
	if len(plain) != len(router) || len(plain) < 100 {
		t.Fatalf("%d cases, %d for the router; want the same number, at least 100", len(plain), len(router))
	}
	for i := range plain {
		if plain[i].Name != router[i].Name {
			t.Errorf("case %d is %s and %s", i, plain[i].Name, router[i].Name)
		}
	}
}

// Two memcached processes must agree with each other, or the comparison with a router means nothing.
func TestConversationsAreDeterministic(t *testing.T) {
	servers := memcachedtest.StartN(t, 2, memcachedtest.Steady...)
	conversations, err := Conversations()
	if err != nil {
		t.Fatal(err)
	}
	release, err := Release(servers[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			if !Holds(c.Variants, release) {
				t.Skipf("this is for memcached %s, here is %s", c.Variants, release)
			}
			var transcripts [2][]string
			for i, s := range servers {
				if err := Flush(s.Addr()); err != nil {
					t.Fatal(err)
				}
				if transcripts[i], err = Transcript(s.Addr(), c); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(transcripts[0], transcripts[1]); diff != "" {
				t.Errorf("two servers differ:\n%s", diff)
			}
		})
	}
}
