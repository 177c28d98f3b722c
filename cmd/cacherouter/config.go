package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"
)

// config is the whole configuration, from a file or from flags.
type config struct {
	// Listen are the addresses for clients: host:port, or unix: and a path.
	Listen []string `yaml:"listen"`
	// Admin is the address of the admin HTTP server; empty means none.
	Admin string `yaml:"admin"`
	// Loops is the number of event loops; 0 means one per processor.
	Loops int `yaml:"loops"`
	// Engine is how sockets are served: "auto", or "portable" for goroutines.
	Engine string `yaml:"engine"`
	// DrainDelay is how long readyz fails before listeners close, and DrainTimeout how
	// long clients then have to finish.
	DrainDelay   duration `yaml:"drain_delay"`
	DrainTimeout duration `yaml:"drain_timeout"`

	Pool poolConfig `yaml:"pool"`
}

// poolConfig is a set of servers and how keys are placed on them.
type poolConfig struct {
	Servers        []serverConfig `yaml:"servers"`
	Distribution   string         `yaml:"distribution"`
	Hash           string         `yaml:"hash"`
	HashTag        string         `yaml:"hash_tag"`
	Timeout        duration       `yaml:"timeout"`
	ConnectTimeout duration       `yaml:"connect_timeout"`
	MaxValue       int            `yaml:"max_value"`
	BulkSize       int            `yaml:"bulk_size"`
	FlushAll       bool           `yaml:"flush_all"`
	// OnFailure says how a get is answered whose server fails: "error" or "miss".
	OnFailure string `yaml:"on_failure"`

	line int // of the pool in its file
}

// defaultConfig returns what holds where nothing else is said.
func defaultConfig() config {
	return config{
		Listen:       []string{"127.0.0.1:11311"},
		Admin:        "127.0.0.1:11312",
		Engine:       "auto",
		DrainTimeout: duration(10 * time.Second),
		Pool: poolConfig{
			Distribution:   "rendezvous",
			Timeout:        duration(time.Second),
			ConnectTimeout: duration(time.Second),
			MaxValue:       128 << 20,
			BulkSize:       32 << 10,
			FlushAll:       true,
			OnFailure:      "error",
		},
	}
}

// duration is a time.Duration that is written as in Go: "250ms", "1m".
type duration time.Duration

// UnmarshalText reads a duration.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v < 0 {
		err = errors.New("must not be negative")
	}
	*d = duration(v)
	return err
}

// loadConfig reads a configuration file and checks it.
func loadConfig(file string) (config, error) {
	c := defaultConfig()
	b, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("cannot read configuration: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, inFile(file, err)
	}
	if err := c.validate(); err != nil {
		return c, inFile(file, err)
	}
	return c, nil
}

// inFile says where in which file something is wrong, one line for each fault.
func inFile(file string, err error) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return fmt.Errorf("%s: %w", file, err)
	}
	var all []error
	for _, e := range te.Errors {
		all = append(all, fmt.Errorf("%s: %s", file, e))
	}
	return errors.Join(all...)
}

// validate checks what the types do not.
func (c *config) validate() error {
	if len(c.Listen) == 0 {
		return errors.New("listen: want at least one address")
	}
	for _, a := range append([]string{c.Admin}, c.Listen...) {
		if a == "" {
			continue
		}
		if err := checkAddress(a); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	switch {
	case c.Loops < 0 || c.Loops > 1024:
		return fmt.Errorf("loops: %d is not between 0 and 1024", c.Loops)
	case c.Engine != "auto" && c.Engine != "portable":
		return fmt.Errorf("engine: %q is neither auto nor portable", c.Engine)
	}
	return c.Pool.validate()
}

func (p *poolConfig) validate() error {
	switch {
	case p.OnFailure != "error" && p.OnFailure != "miss":
		return fmt.Errorf("pool.on_failure: %q is neither error nor miss", p.OnFailure)
	case p.Timeout == 0 || p.ConnectTimeout == 0:
		return errors.New("pool: timeout and connect_timeout must be over 0")
	case p.MaxValue < 1 || p.MaxValue > 1<<30:
		return fmt.Errorf("pool.max_value: %d is not between 1 and %d bytes", p.MaxValue, 1<<30)
	case p.BulkSize < 1:
		return fmt.Errorf("pool.bulk_size: %d is less than 1 byte", p.BulkSize)
	}
	_, err := buildTable(p)
	return err
}
