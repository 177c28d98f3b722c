package hotkey

import (
	"cmp"
	"fmt"
	"time"
)

// Config sets up a [Collector]. The zero value has the defaults. A key's share of the
// requests or of the bytes, whichever is larger against its limit, makes it hot.
type Config struct {
	// Servers is how many servers share the traffic; 0 means 1. With more servers each
	// has less to do, and a smaller share of all traffic is a lot for one.
	Servers int
	// Hot is the share of one server's even part of the traffic from which a key is
	// hot: with 0.25 and 8 servers, 0.25/8 of all. 0 means 0.25.
	Hot float64
	// Severe is the same for the level Severe; 0 means 0.5. It is at least Hot.
	Severe float64
	// MinShare is the share of all traffic below which no key is hot; 0 means 0.001.
	MinShare float64
	// MinRate is the number of requests a second below which no key is hot because of
	// requests; 0 means 500.
	MinRate float64
	// MinBytes is the same in bytes a second; 0 means 4 MiB.
	MinBytes float64
	// LargeValue is the size from which a value is large, in bytes, at least 16 KiB; 0
	// means 256 KiB.
	LargeValue int
	// EnterTicks is in how many of the last three calls of Collect a key must be above a
	// limit to reach its level, 1 to 3; 0 means 2.
	EnterTicks int
	// Leave is the part of a limit below which a key loses the level, after LeaveAfter;
	// 0 means 0.5.
	Leave float64
	// LeaveAfter is how long it must be below; 0 means 5 s.
	LeaveAfter time.Duration
	// Smooth is the time constant of the rates; 0 means 500 ms.
	Smooth time.Duration
	// Delimiter ends the part of a key that its prefix is; 0 means ':'.
	Delimiter byte
}

func (c *Config) complete() {
	c.Servers = cmp.Or(c.Servers, 1)
	c.Hot = cmp.Or(c.Hot, 0.25)
	c.Severe = cmp.Or(c.Severe, max(0.5, c.Hot))
	c.MinShare = cmp.Or(c.MinShare, 0.001)
	c.MinRate = cmp.Or(c.MinRate, 500)
	c.MinBytes = cmp.Or(c.MinBytes, 4<<20)
	c.LargeValue = cmp.Or(c.LargeValue, 256<<10)
	c.EnterTicks = cmp.Or(c.EnterTicks, 2)
	c.Leave = cmp.Or(c.Leave, 0.5)
	c.LeaveAfter = cmp.Or(c.LeaveAfter, 5*time.Second)
	c.Smooth = cmp.Or(c.Smooth, 500*time.Millisecond)
	c.Delimiter = cmp.Or(c.Delimiter, ':')
}

// validate checks a complete config.
func (c *Config) validate() error {
	switch {
	case c.Servers < 0:
		return fmt.Errorf("cannot use %d servers: it is negative", c.Servers)
	case !(c.Hot > 0) || !(c.Severe >= c.Hot):
		return fmt.Errorf("cannot use the limits hot %v and severe %v: they must be above 0 and in order", c.Hot, c.Severe)
	case !(c.MinShare > 0 && c.MinShare <= 1):
		return fmt.Errorf("cannot use a least share of %v: it is not above 0 and at most 1", c.MinShare)
	case !(c.MinRate > 0) || !(c.MinBytes > 0):
		return fmt.Errorf("cannot use the least rates %v and %v: they must be above 0", c.MinRate, c.MinBytes)
	case c.LargeValue < largeFloor:
		return fmt.Errorf("cannot look for values from %d bytes: it is below %d", c.LargeValue, largeFloor)
	case c.EnterTicks < 1 || c.EnterTicks > 3:
		return fmt.Errorf("cannot wait for %d of 3 ticks: it is not in 1 to 3", c.EnterTicks)
	case !(c.Leave > 0 && c.Leave < 1):
		return fmt.Errorf("cannot use a leave factor of %v: it is not between 0 and 1", c.Leave)
	case c.LeaveAfter < 0 || c.Smooth <= 0:
		return fmt.Errorf("cannot use times %v and %v: they must be above 0", c.LeaveAfter, c.Smooth)
	}
	return nil
}

// limit returns the share of all traffic at which a level begins.
func (c *Config) limit(level Level) float64 {
	part := c.Hot
	if level == Severe {
		part = c.Severe
	}
	return min(1, max(part/float64(c.Servers), c.MinShare*part/c.Hot))
}
