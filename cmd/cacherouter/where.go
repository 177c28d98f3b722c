package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// poolFlags name a pool, in a file or on the command line.
type poolFlags struct {
	Config       string         `help:"Configuration file." type:"path" placeholder:"FILE"`
	Backends     []serverConfig `help:"Servers, each [name=]host:port[@weight]." placeholder:"SERVER,..."`
	Distribution string         `help:"How keys are placed." placeholder:"NAME"`
	Hash         string         `help:"The key hash, where the distribution leaves a choice." placeholder:"NAME"`
	HashTag      string         `help:"Two characters: only what stands between them is hashed." placeholder:"{}"`
}

// load returns the configuration that the flags ask for: the file's, changed by what
// stands on the command line.
func (f *poolFlags) load() (config, error) {
	c := defaultConfig()
	if f.Config != "" {
		var err error
		if c, err = loadConfig(f.Config); err != nil {
			return c, err
		}
	}
	if len(f.Backends) > 0 {
		c.Pool.Servers = f.Backends
	}
	for _, o := range []struct{ to, from *string }{
		{&c.Pool.Distribution, &f.Distribution},
		{&c.Pool.Hash, &f.Hash},
		{&c.Pool.HashTag, &f.HashTag},
	} {
		if *o.from != "" {
			*o.to = *o.from
		}
	}
	return c, nil
}

type checkCmd struct {
	Config string `help:"Configuration file." type:"path" required:"" placeholder:"FILE"`
}

// Run checks a configuration file.
func (c *checkCmd) Run(s streams) error {
	cfg, err := loadConfig(c.Config)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: ok, %d servers\n", c.Config, len(cfg.Pool.Servers))
	return nil
}

type whereCmd struct {
	poolFlags
	JSON bool     `name:"json" help:"Print JSON."`
	Keys []string `arg:"" name:"key" help:"Keys to place."`
}

// whereResult is what --json prints for a key.
type whereResult struct {
	Key     string   `json:"key"`
	Servers []string `json:"servers"`
}

// maxCandidates is how many servers where prints for a key.
const maxCandidates = 3

// Run prints where keys live.
func (c *whereCmd) Run(s streams) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	t, err := buildTable(&cfg.Pool)
	if err != nil {
		return err
	}
	var all []whereResult
	for _, key := range c.Keys {
		r := whereResult{Key: key}
		for _, i := range t.Picker.Pick(nil, t.HashOf([]byte(key)), maxCandidates) {
			r.Servers = append(r.Servers, cfg.Pool.Servers[i].String())
		}
		all = append(all, r)
	}
	if c.JSON {
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	printWhere(s.out, all)
	return nil
}

func printWhere(w io.Writer, all []whereResult) {
	for _, r := range all {
		fmt.Fprint(w, r.Key)
		for _, server := range r.Servers {
			fmt.Fprint(w, "\t", server)
		}
		fmt.Fprintln(w)
	}
}
