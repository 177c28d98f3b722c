package main

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// duration is a time.Duration that is written as in Go: "250ms", "1m".
type duration time.Duration

// UnmarshalText reads a duration.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v < 0 {
		err = fmt.Errorf("duration %s is negative", b)
	}
	*d = duration(v)
	return err
}

// UnmarshalYAML reads a duration and says where a bad one stands.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	if err := d.UnmarshalText([]byte(n.Value)); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

// String writes it as UnmarshalText reads it.
func (d duration) String() string { return time.Duration(d).String() }
