package embedded

import (
	"testing"

	"cacherouter/internal/conformance"
)

// asRouter names the cases in which the server answers as the router does, and not as
// memcached 1.6.18. They are a matter of reading requests, and the parser is the
// router's: it swallows the data block of a line it refuses, takes no number beyond 32
// bits for a length, and knows no bget and no operator's commands.
var asRouter = map[string]bool{
	"add-key-251":            true,
	"admin-words":            true,
	"append-key-251-noreply": true,
	"bget":                   true,
	"cas-bad-token":          true,
	"key-251-set":            true,
	"meta-set-key-251":       true,
	"set-bad-exptime":        true,
	"set-bad-flags":          true,
	"set-bad-flags-noreply":  true,
	"set-length-wraps":       true,
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start("127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cases returns the recorded cases as this server should answer them.
func cases(t *testing.T) []conformance.Case {
	t.Helper()
	plain, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	router, err := conformance.RouterCases()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := range plain {
		if asRouter[plain[i].Name] {
			plain[i] = router[i]
			found++
		}
	}
	if found != len(asRouter) {
		t.Fatalf("found %d of the %d cases with a router's answer", found, len(asRouter))
	}
	return plain
}

func TestCases(t *testing.T) {
	s := start(t, Config{})
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if err := conformance.Flush(s.Addr()); err != nil {
				t.Fatal(err)
			}
			if err := conformance.Replay(s.Addr(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConversationsAsOnMemcached(t *testing.T) {
	p := startPair(t)
	conversations, err := conformance.Conversations()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			diff, err := p.compare(c.Requests)
			if err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Errorf("memcached (-) and the embedded server (+) differ:\n%s", diff)
			}
		})
	}
}
