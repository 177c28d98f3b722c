package conformance

import (
	"fmt"
	"strings"
	"time"
)

// settleFor is how long nothing may come before a recorded reply counts as complete.
const settleFor = 250 * time.Millisecond

// Record returns the text of a case with each <? line replaced by the bytes that the server at addr answers there.
// It is how cases are written: requests by hand, replies by real memcached.
func Record(addr, name, text string) (string, error) {
	c, err := Parse(name, text)
	if err != nil {
		return "", err
	}
	s, err := dial(addr)
	if err != nil {
		return "", err
	}
	defer s.close()
	lines := strings.Split(text, "\n")
	for _, step := range c.Steps {
		if step.Op == "<?" {
			lines[step.Line-1] = recordedLine(s.settle(settleFor))
			continue
		}
		if err := s.run(step); err != nil {
			return "", fmt.Errorf("cannot record %s line %d: %w", name, step.Line, err)
		}
	}
	return strings.Join(lines, "\n"), nil
}

func recordedLine(got string) string {
	if got == "" {
		return fmt.Sprintf("=quiet %d", settleFor.Milliseconds()/5)
	}
	return fmt.Sprintf("< %q", got)
}
