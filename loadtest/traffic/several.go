package traffic

import (
	"errors"
	"sync/atomic"
	"time"

	"cacherouter/loadtest/caller"
)

// several asks one of its targets, and when that fails the next, as applications do that know several
// routers. A write that failed is thereby made again, which its ledger allows, as it is the same value.
// It is not safe for concurrent use.
type several struct {
	conns []*caller.Conn // the first is the one to ask
	at    int            // the one that is asked meanwhile
	back  time.Time      // when to try the first again
	again *atomic.Int64  // requests that were asked again
}

// backAfter is how long a target that failed is not asked.
const backAfter = time.Second

func newSeveral(p Plan, first int, again *atomic.Int64) *several {
	s := &several{again: again}
	for i := range p.Targets {
		target := p.Targets[(first+i)%len(p.Targets)]
		s.conns = append(s.conns, &caller.Conn{Target: target, Timeout: p.timeout()})
	}
	return s
}

// ask has a target asked until one answers, be it with an error line. All are tried once.
func (s *several) ask(do func(*caller.Conn) error) (err error) {
	if s.at != 0 && time.Now().After(s.back) {
		s.at = 0
	}
	for range s.conns {
		err = do(s.conns[s.at])
		if err == nil || errors.As(err, new(caller.Refusal)) {
			return err
		}
		s.again.Add(1)
		s.at, s.back = (s.at+1)%len(s.conns), time.Now().Add(backAfter)
	}
	return err
}

func (s *several) Get(key string) (value []byte, hit bool, err error) {
	err = s.ask(func(c *caller.Conn) (err error) {
		value, hit, err = c.Get(key)
		return err
	})
	return value, hit, err
}

func (s *several) Set(key string, value []byte, ttl int) error {
	return s.ask(func(c *caller.Conn) error { return c.Set(key, value, ttl) })
}

func (s *several) Delete(key string) error {
	return s.ask(func(c *caller.Conn) error { return c.Delete(key) })
}

func (s *several) Close() {
	for _, c := range s.conns {
		c.Close()
	}
}
