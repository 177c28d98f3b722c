//go:build linux

package process

import (
	"context"
	"regexp"
)

// Dual is a running process that serves the same at two addresses ("host:port").
type Dual struct {
	*Process
	Plain  string
	Secure string // TLS
}

var listeningDual = regexp.MustCompile(`msg=listening .*\baddr=(127\.0\.0\.1:\d+) tls=(true|false)`)

// StartDual starts c, which must say where it listens as cacherouter does. Its Ready is not used.
func StartDual(ctx context.Context, c Command) (*Dual, error) {
	d := &Dual{}
	c.Ready = func(line string) bool {
		if found := listeningDual.FindStringSubmatch(line); found != nil && found[2] == "true" {
			d.Secure = found[1]
		} else if found != nil {
			d.Plain = found[1]
		}
		return d.Plain != "" && d.Secure != ""
	}
	p, err := Start(ctx, c)
	if err != nil {
		return nil, err
	}
	d.Process = p
	return d, nil
}
