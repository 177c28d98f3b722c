package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type importCmd struct {
	Pool string `help:"The pool to import, if the file has several." placeholder:"NAME"`
	File string `arg:"" help:"Configuration of nutcracker (twemproxy), YAML." type:"path"`
}

// twemproxyPool is one pool of a twemproxy configuration.
type twemproxyPool struct {
	Listen          string   `yaml:"listen"`
	Hash            string   `yaml:"hash"`
	HashTag         string   `yaml:"hash_tag"`
	Distribution    string   `yaml:"distribution"`
	Timeout         *int     `yaml:"timeout"` // milliseconds; none means for ever
	Backlog         *int     `yaml:"backlog"`
	Clients         *int     `yaml:"client_connections"`
	Redis           bool     `yaml:"redis"`
	RedisAuth       *string  `yaml:"redis_auth"`
	RedisDB         *int     `yaml:"redis_db"`
	Keepalive       *bool    `yaml:"tcpkeepalive"`
	ReusePort       *bool    `yaml:"reuseport"`
	Preconnect      *bool    `yaml:"preconnect"`
	AutoEject       bool     `yaml:"auto_eject_hosts"`
	ServerConns     *int     `yaml:"server_connections"`
	RetryTimeout    *int     `yaml:"server_retry_timeout"`
	FailureLimit    *int     `yaml:"server_failure_limit"`
	Servers         []string `yaml:"servers"`
	name            string
	serversImported []serverConfig
}

// Run prints our configuration for another program's.
func (c *importCmd) Run(s streams) error {
	p, err := readTwemproxy(c.File, c.Pool)
	if err != nil {
		return err
	}
	text, err := p.ours(c.File)
	if err != nil {
		return fmt.Errorf("%s: pool %s: %w", c.File, p.name, err)
	}
	_, err = io.WriteString(s.out, text)
	return err
}

// readTwemproxy reads one pool of a file.
func readTwemproxy(file, name string) (*twemproxyPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration: %w", err)
	}
	var pools map[string]*twemproxyPool
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	dec.KnownFields(true)
	if err := dec.Decode(&pools); err != nil && !errors.Is(err, io.EOF) {
		return nil, inFile(file, err)
	}
	var names []string
	for n, p := range pools {
		if p != nil {
			names = append(names, n)
			p.name = n
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no pool in it", file)
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return nil, fmt.Errorf("%s: several pools, choose one with --pool: %s", file, strings.Join(names, " "))
	case !slices.Contains(names, name):
		return nil, fmt.Errorf("%s: no pool %s: it has %s", file, name, strings.Join(names, " "))
	}
	return pools[name], nil
}

// server reads a server: host:port:weight and perhaps a name.
func (p *twemproxyPool) server(text string) (serverConfig, error) {
	addr, name, _ := strings.Cut(strings.TrimSpace(text), " ")
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return serverConfig{}, fmt.Errorf("server %q is not host:port:weight", text)
	}
	w, err := strconv.Atoi(addr[i+1:])
	if err != nil {
		return serverConfig{}, fmt.Errorf("server %q is not host:port:weight", text)
	}
	addr = addr[:i]
	if strings.HasPrefix(addr, "/") {
		addr = "unix:" + addr
	}
	s := serverConfig{Name: strings.TrimSpace(name), Address: addr, Weight: w}
	if s.Name == "" {
		s.Name = addr
	}
	return s, s.check()
}

// ours returns the pool as our configuration, with a comment for what has no
// counterpart.
func (p *twemproxyPool) ours(file string) (string, error) {
	distribution, err := p.check()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# From pool %s of %s. Keys stay where they are.\n", p.name, file)
	listen := p.Listen
	if strings.HasPrefix(listen, "/") {
		path, mode, ok := strings.Cut(listen, " ")
		listen = "unix:" + path
		if ok {
			fmt.Fprintf(&b, "# listen: permissions %s have no counterpart; use those of the folder.\n", strings.TrimSpace(mode))
		}
	}
	if listen != "" {
		fmt.Fprintf(&b, "listen: [%q]\n", listen)
	}
	p.limits(&b)
	fmt.Fprintf(&b, "pool:\n  distribution: %s\n", distribution)
	if p.Hash != "" {
		fmt.Fprintf(&b, "  hash: %s\n", p.Hash)
	}
	if p.HashTag != "" {
		fmt.Fprintf(&b, "  hash_tag: %q\n", p.HashTag)
	}
	p.timeouts(&b)
	b.WriteString("  servers: # their order is part of the placement\n")
	for _, s := range p.serversImported {
		fmt.Fprintf(&b, "    - %q\n", s.String()+"@"+strconv.Itoa(s.Weight))
	}
	return b.String(), nil
}

// check reads the servers and returns the name of our distribution; the pool must build.
func (p *twemproxyPool) check() (string, error) {
	if p.Redis {
		return "", errors.New("redis: true: this router speaks memcached only")
	}
	names := map[string]string{"": "twemproxy-ketama", "ketama": "twemproxy-ketama", "modula": "twemproxy-modula"}
	distribution, ok := names[p.Distribution]
	if !ok {
		return "", fmt.Errorf("distribution: %q has no counterpart: random placement keeps no cache warm", p.Distribution)
	}
	for _, text := range p.Servers {
		s, err := p.server(text)
		if err != nil {
			return "", err
		}
		p.serversImported = append(p.serversImported, s)
	}
	pool := defaultConfig().Pool
	pool.Servers, pool.Distribution, pool.Hash, pool.HashTag = p.serversImported, distribution, p.Hash, p.HashTag
	_, err := buildTable(&pool)
	return distribution, err
}

// limits writes what concerns clients.
func (p *twemproxyPool) limits(b *strings.Builder) {
	if p.Clients != nil {
		fmt.Fprintf(b, "max_clients: %d\n", *p.Clients)
	}
	for _, o := range []struct {
		set  bool
		name string
		why  string
	}{
		{p.Backlog != nil, "backlog", "the system's is used"},
		{p.Keepalive != nil, "tcpkeepalive", "it is always on"},
		{p.ReusePort != nil, "reuseport", "one process uses all processors"},
		{p.Preconnect != nil, "preconnect", "servers are connected to at start"},
		{p.ServerConns != nil, "server_connections", "each event loop has one connection to each server, and one for big values, and keeps requests on one key in order"},
		{p.AutoEject, "auto_eject_hosts", "a server that fails keeps its keys, and its requests fail at once until it is back"},
		{p.RetryTimeout != nil, "server_retry_timeout", "reconnecting is tried from 50 ms up to every 2 s"},
		{p.FailureLimit != nil, "server_failure_limit", "a server is down while it takes no connection"},
		{p.RedisAuth != nil, "redis_auth", "this router speaks memcached only"},
		{p.RedisDB != nil, "redis_db", "this router speaks memcached only"},
	} {
		if o.set {
			fmt.Fprintf(b, "# %s has no counterpart: %s.\n", o.name, o.why)
		}
	}
}

// timeouts writes what concerns servers.
func (p *twemproxyPool) timeouts(b *strings.Builder) {
	if p.Timeout == nil {
		b.WriteString("  # timeout: there was none; requests are now given up after the default of 1s.\n")
		return
	}
	fmt.Fprintf(b, "  timeout: %dms\n  connect_timeout: %dms\n", *p.Timeout, *p.Timeout)
}
