package coalesce

import (
	"fmt"
	"time"
)

// Mode says which flights a get may join.
type Mode uint8

// The modes.
const (
	// Strict lets a get join a flight until the flight's request may have left.
	Strict Mode = iota
	// Inflight also lets it join a flight that has left, if that is young and no write
	// of the key through this router began or ended since. Writes that go another way
	// may be missed for as long as a flight takes.
	Inflight
)

// Config sets up a [Table]. The zero value is the strict mode with the defaults.
type Config struct {
	Mode Mode
	// MaxAge is how long after it was led a flight may be joined in the inflight mode;
	// 0 means 10 ms.
	MaxAge time.Duration
	// MaxFlights is how many keys may have flights. Gets of further keys go alone. 0
	// means 65,536.
	MaxFlights int
	// MaxTries is how many flights may fail under a get before it fails as well, at most
	// 255; 0 means 2.
	MaxTries int
	// Retry is asked, where a flight has failed that gets would make once more, whether they
	// may; nil means always.
	Retry func() bool
}

func (c *Config) validate() error {
	switch {
	case c.Mode > Inflight:
		return fmt.Errorf("cannot use mode %d: there is no such mode", c.Mode)
	case c.MaxAge < 0:
		return fmt.Errorf("cannot use a maximum age of %v: it is negative", c.MaxAge)
	case c.MaxFlights < 0:
		return fmt.Errorf("cannot use a maximum of %d flights: it is negative", c.MaxFlights)
	case c.MaxTries < 0 || c.MaxTries > 255:
		return fmt.Errorf("cannot use a maximum of %d tries: it is not in 0 to 255", c.MaxTries)
	}
	return nil
}

// Stats counts what became of gets, since the start.
type Stats struct {
	Led     uint64 // requests to servers
	Joined  uint64 // gets that joined a flight already led
	Waited  uint64 // gets that had to wait for the next flight
	Alone   uint64 // gets that went without a flight, as there were too many
	Sealed  uint64 // flights that a write kept from being joined
	Again   uint64 // gets that outlived the failure of their flight
	Expired uint64 // gets whose deadline passed while they waited
}

// Add adds the counts of another table.
func (s *Stats) Add(o Stats) {
	s.Led += o.Led
	s.Joined += o.Joined
	s.Waited += o.Waited
	s.Alone += o.Alone
	s.Sealed += o.Sealed
	s.Again += o.Again
	s.Expired += o.Expired
}
