package chaos

import (
	"context"
	"errors"
	"fmt"
)

// planned is a fault with all that is needed to make it and to take it back.
type planned struct {
	do   func(context.Context) error
	undo func(context.Context) error // also right if do has failed
}

// plan looks up what a fault is about, and changes nothing.
func plan(ctx context.Context, d *docker, project string, f Fault) (planned, error) {
	c, err := d.find(ctx, project, f.Service)
	if err != nil {
		return planned{}, err
	}
	if c.State.Status != "running" {
		return planned{}, fmt.Errorf("service %s is %s, not running", f.Service, c.State.Status)
	}
	switch f.Kind {
	case "kill":
		return switched(d, c, "kill", "start"), nil
	case "pause":
		return switched(d, c, "pause", "unpause"), nil
	}
	return planCut(d, c, project, f)
}

// switched is one request there and one back. Taking back what was not done is an error of the engine's,
// so the container's state is looked at before.
func switched(d *docker, c *container, do, undo string) planned {
	return planned{
		do: func(ctx context.Context) error { return d.do(ctx, c, do) },
		undo: func(ctx context.Context) error {
			now, err := d.inspect(ctx, c.ID)
			if err != nil || now.State.Status == "running" {
				return err
			}
			return d.do(ctx, c, undo)
		},
	}
}

// planCut is about one of a container's networks, or all.
func planCut(d *docker, c *container, project string, f Fault) (planned, error) {
	cables := c.NetworkSettings.Networks
	if f.Network != "" {
		name := project + "_" + f.Network
		if cables[name] == nil {
			return planned{}, fmt.Errorf("service %s is not in network %q", f.Service, f.Network)
		}
		cables = map[string]*endpoint{name: cables[name]}
	}
	if len(cables) == 0 {
		return planned{}, fmt.Errorf("service %s is in no network", f.Service)
	}
	return planned{
		do: func(ctx context.Context) error {
			for _, e := range cables {
				if err := d.unplug(ctx, c, e); err != nil {
					return err
				}
			}
			return nil
		},
		undo: func(ctx context.Context) error {
			now, err := d.inspect(ctx, c.ID)
			if err != nil {
				return err
			}
			for name, e := range cables {
				if now.NetworkSettings.Networks[name] == nil {
					err = errors.Join(err, d.plug(ctx, c, e))
				}
			}
			return err
		},
	}, nil
}
