// Package chaos does to the containers of a Compose project what happens to machines: it kills them, has
// them stand still, and pulls out their network cables. Each fault is taken back after a while, also when
// the program is interrupted. Other projects' containers are never touched.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says what is done. Project, Faults and Note must be set.
type Config struct {
	Socket  string // path of the engine's; empty means the usual one
	Project string // of Compose; empty means that of the container that this process is in
	Faults  []Fault
	// First is how long to wait before the first fault, Hold how long each lasts, Rest the time after it.
	First, Hold, Rest time.Duration
	Note              func(string)
}

// Fault is what happens to a service.
type Fault struct {
	Kind    string // kill, pause or cut
	Service string
	Network string // of a cut: the one network, by its name in the compose file; empty means all
}

// UnmarshalText reads a fault as it is written: kill=cache-a, pause=cache-b, cut=cache-c, or
// cut=router-2@gossip for one network.
func (f *Fault) UnmarshalText(b []byte) error {
	kind, service, ok := strings.Cut(string(b), "=")
	service, network, one := strings.Cut(service, "@")
	*f = Fault{kind, service, network}
	switch {
	case !ok || service == "" || one && network == "" || !slices.Contains([]string{"kill", "pause", "cut"}, kind):
		return fmt.Errorf("%q is no fault: want kill=SERVICE, pause=SERVICE, cut=SERVICE or cut=SERVICE@NETWORK", b)
	case one && kind != "cut":
		return fmt.Errorf("%q: only a cut is of one network", b)
	}
	return nil
}

// String writes it as UnmarshalText reads it.
func (f Fault) String() string {
	if f.Network != "" {
		return f.Kind + "=" + f.Service + "@" + f.Network
	}
	return f.Kind + "=" + f.Service
}

// usualSocket is where a Docker engine listens.
const usualSocket = "/var/run/docker.sock"

// undoTimeout bounds taking a fault back, which is done whatever happened.
const undoTimeout = 2 * time.Minute

// Run makes the faults one after the other. All services are looked up before the first fault, so that a
// name that is wrong breaks nothing.
func Run(ctx context.Context, c Config) error {
	if c.Socket == "" {
		c.Socket = usualSocket
	}
	d := newDocker(c.Socket)
	if c.Project == "" {
		var err error
		if c.Project, err = ownProject(ctx, d); err != nil {
			return err
		}
	}
	for _, f := range c.Faults {
		if _, err := plan(ctx, d, c.Project, f); err != nil {
			return fmt.Errorf("%v: %w", f, err)
		}
	}
	if err := wait(ctx, c.First); err != nil {
		return err
	}
	for _, f := range c.Faults {
		if err := c.happen(ctx, d, f); err != nil {
			return fmt.Errorf("%v: %w", f, err)
		}
		if err := wait(ctx, c.Rest); err != nil {
			return err
		}
	}
	return nil
}

// ownProject is the project of the container that this process is in, whose host name is its id.
func ownProject(ctx context.Context, d *docker) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	self, err := d.inspect(ctx, host)
	if err != nil {
		return "", fmt.Errorf("cannot tell which Compose project this container is of, so name it: %w", err)
	}
	project := self.Config.Labels[labelProject]
	if project == "" {
		return "", errors.New("this container is of no Compose project, so name one")
	}
	return project, nil
}

// happen makes a fault, lets it last, and takes it back.
func (c Config) happen(ctx context.Context, d *docker, f Fault) (err error) {
	p, err := plan(ctx, d, c.Project, f)
	if err != nil {
		return err
	}
	c.note("%v for %v", f, c.Hold)
	defer func() {
		// Also of what was only half done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		undone := p.undo(ctx)
		err = errors.Join(err, undone)
		if undone == nil {
			c.note("%v is over", f)
		}
	}()
	if err := p.do(ctx); err != nil {
		return err
	}
	return wait(ctx, c.Hold)
}

func (c Config) note(format string, args ...any) {
	c.Note(time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...))
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
