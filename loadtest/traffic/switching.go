package traffic

import (
	"errors"
	"time"

	"cacherouter/loadtest/caller"
)

// switching is a connection to one of several targets. After a request that was not answered the next
// one goes to the next target.
type switching struct {
	conns []caller.Conn
	at    int
}

func newSwitching(targets []string, first int, timeout time.Duration) *switching {
	s := &switching{at: first}
	for _, t := range targets {
		s.conns = append(s.conns, caller.Conn{Target: t, Timeout: timeout})
	}
	return s
}

// Get asks one target.
func (s *switching) Get(key string) (value []byte, hit bool, err error) {
	value, hit, err = s.conns[s.at].Get(key)
	return value, hit, s.after(err)
}

// Set stores by one target.
func (s *switching) Set(key string, value []byte, ttl int) error {
	return s.after(s.conns[s.at].Set(key, value, ttl))
}

// Delete removes by one target.
func (s *switching) Delete(key string) error { return s.after(s.conns[s.at].Delete(key)) }

// Close closes what is open.
func (s *switching) Close() {
	for i := range s.conns {
		s.conns[i].Close()
	}
}

// after looks at how a request ended. One that was refused was answered.
func (s *switching) after(err error) error {
	if refusal := caller.Refusal(""); err != nil && !errors.As(err, &refusal) {
		s.at = (s.at + 1) % len(s.conns)
	}
	return err
}
