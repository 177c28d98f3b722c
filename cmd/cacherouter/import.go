package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type importCmd struct {
	Pool string `help:"The one pool to import; all of the file if none is named." placeholder:"NAME"`
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
	pools, err := readTwemproxy(c.File, c.Pool)
	if err != nil {
		return err
	}
	var b strings.Builder
	if len(pools) == 1 {
		err = pools[0].alone(&b, c.File)
	} else {
		err = together(&b, pools, c.File)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.out, b.String())
	return err
}

// readTwemproxy reads the pools of a file, or the one that is named.
func readTwemproxy(file, name string) ([]*twemproxyPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration: %w", err)
	}
	var byName map[string]*twemproxyPool
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	dec.KnownFields(true)
	if err := dec.Decode(&byName); err != nil && !errors.Is(err, io.EOF) {
		return nil, inFile(file, err)
	}
	var names []string
	var pools []*twemproxyPool
	for _, n := range slices.Sorted(maps.Keys(byName)) {
		p := byName[n]
		if p == nil {
			continue
		}
		p.name = n
		names = append(names, n)
		if name == "" || n == name {
			pools = append(pools, p)
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no pool in it", file)
	case len(pools) == 0:
		return nil, fmt.Errorf("%s: no pool %s: it has %s", file, name, strings.Join(names, " "))
	}
	return pools, nil
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

// alone writes a configuration of one pool, with a comment for what has no counterpart.
func (p *twemproxyPool) alone(b *strings.Builder, file string) error {
	distribution, err := p.check()
	if err != nil {
		return fmt.Errorf("%s: pool %s: %w", file, p.name, err)
	}
	fmt.Fprintf(b, "# From pool %s of %s. Keys stay where they are.\n", p.name, file)
	if listen := p.listen(b, ""); listen != "" {
		fmt.Fprintf(b, "listen: [%q]\n", listen)
	}
	if p.Clients != nil {
		fmt.Fprintf(b, "max_clients: %d\n", *p.Clients)
	}
	p.foreign(b, "")
	b.WriteString("pool:\n")
	p.body(b, "  ", distribution)
	return nil
}

// together writes a configuration of several pools, each with its own listener. Those of Redis are
// left out.
func together(b *strings.Builder, pools []*twemproxyPool, file string) error {
	fmt.Fprintf(b, "# From %s. Keys stay where they are.\n", file)
	var listeners, bodies strings.Builder
	clients, bounded, taken := 0, true, 0
	for _, p := range pools {
		if p.Redis {
			fmt.Fprintf(b, "# Pool %s is left out: this router speaks memcached only.\n", p.name)
			continue
		}
		distribution, err := p.check()
		if err != nil {
			return fmt.Errorf("%s: pool %s: %w", file, p.name, err)
		}
		taken++
		if listen := p.listen(b, "pool "+p.name+": "); listen != "" {
			fmt.Fprintf(&listeners, "  - {address: %q, routes: [{pool: %q}]}\n", listen, p.name)
		}
		if p.Clients != nil {
			clients += *p.Clients
		} else {
			bounded = false
		}
		fmt.Fprintf(&bodies, "  %q:\n", p.name)
		p.foreign(&bodies, "    ")
		p.body(&bodies, "    ", distribution)
	}
	if taken == 0 {
		return fmt.Errorf("%s: no pool for memcached in it", file)
	}
	if bounded {
		fmt.Fprintf(b, "max_clients: %d # of all pools together\n", clients)
	}
	fmt.Fprintf(b, "listen:\n%spools:\n%s", &listeners, &bodies)
	return nil
}

// listen returns our address for the pool's clients, empty if there is none.
func (p *twemproxyPool) listen(b *strings.Builder, where string) string {
	if !strings.HasPrefix(p.Listen, "/") {
		return p.Listen
	}
	path, mode, ok := strings.Cut(p.Listen, " ")
	if ok {
		fmt.Fprintf(b, "# %slisten: permissions %s have no counterpart; use those of the folder.\n", where, strings.TrimSpace(mode))
	}
	return "unix:" + path
}

// body writes the fields of our pool.
func (p *twemproxyPool) body(b *strings.Builder, indent, distribution string) {
	fmt.Fprintf(b, "%sdistribution: %s\n", indent, distribution)
	if p.Hash != "" {
		fmt.Fprintf(b, "%shash: %s\n", indent, p.Hash)
	}
	if p.HashTag != "" {
		fmt.Fprintf(b, "%shash_tag: %q\n", indent, p.HashTag)
	}
	p.timeouts(b, indent)
	fmt.Fprintf(b, "%sservers: # their order is part of the placement\n", indent)
	for _, s := range p.serversImported {
		fmt.Fprintf(b, "%s  - %q\n", indent, s.String()+"@"+strconv.Itoa(s.Weight))
	}
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

// foreign says what has no counterpart.
func (p *twemproxyPool) foreign(b *strings.Builder, indent string) {
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
		{p.AutoEject, "auto_eject_hosts", "a server that is gone is failed over when the routers agree on that, and its keys move if it stays away; see membership.md"},
		{p.RetryTimeout != nil, "server_retry_timeout", "reconnecting is tried from 50 ms up to every 2 s"},
		{p.FailureLimit != nil, "server_failure_limit", "three failures in a row, or probes, take a server out; see membership.health"},
		{p.RedisAuth != nil, "redis_auth", "this router speaks memcached only"},
		{p.RedisDB != nil, "redis_db", "this router speaks memcached only"},
	} {
		if o.set {
			fmt.Fprintf(b, "%s# %s has no counterpart: %s.\n", indent, o.name, o.why)
		}
	}
}

// timeouts writes what concerns servers.
func (p *twemproxyPool) timeouts(b *strings.Builder, indent string) {
	if p.Timeout == nil {
		fmt.Fprintf(b, "%s# timeout: there was none; requests are now given up after the default of 1s.\n", indent)
		return
	}
	fmt.Fprintf(b, "%stimeout: %dms\n%sconnect_timeout: %dms\n", indent, *p.Timeout, indent, *p.Timeout)
}
