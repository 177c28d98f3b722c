package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cacherouter/compat"
	"cacherouter/mcrouter"

	"go.yaml.in/yaml/v3"
)

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
	ours            string // our address for its clients
	serversImported []serverConfig
}

// importTwemproxy translates a configuration of nutcracker, or one pool of it.
func importTwemproxy(file string, b []byte, name string) (*imported, error) {
	pools, err := readTwemproxy(file, b, name)
	if err != nil {
		return nil, err
	}
	text := new(strings.Builder)
	if len(pools) == 1 {
		err = pools[0].alone(text, file)
	} else {
		pools, err = together(text, pools, file)
	}
	if err != nil {
		return nil, err
	}
	out := &imported{text: text.String()}
	for _, p := range pools {
		o, err := p.origin()
		if err != nil {
			return nil, fmt.Errorf("%s: pool %s: %w", file, p.name, err)
		}
		out.origins = append(out.origins, o)
	}
	return out, nil
}

// origin is where the pool's keys are by twemproxy's rules: the servers as its file lists them, and nothing of what was made of it.
func (p *twemproxyPool) origin() (origin, error) {
	c := compat.Config{Distribution: "twemproxy-" + cmp.Or(p.Distribution, "ketama"), Hash: p.Hash, HashTag: p.HashTag}
	for _, text := range p.Servers {
		addr, name, _ := strings.Cut(strings.TrimSpace(text), " ")
		i := strings.LastIndexByte(addr, ':') // as read before
		weight, err := strconv.Atoi(addr[i+1:])
		if err != nil {
			return origin{}, err
		}
		if addr = addr[:i]; strings.HasPrefix(addr, "/") {
			addr = "unix:" + addr
		}
		c.Servers = append(c.Servers, compat.Server{Name: strings.TrimSpace(name), Addr: addr, Weight: weight})
	}
	placed, err := compat.New(c)
	if err != nil {
		return origin{}, err
	}
	o := origin{says: "pool " + plainly(p.name), listen: p.ours, prefixes: []string{""}}
	o.home = func(key string) (mcrouter.Home, error) {
		on := []string{c.Servers[placed.Pick(nil, placed.Hash([]byte(key)), 1)[0]].Addr}
		return mcrouter.Home{Reads: on, Writes: on, Known: key}, nil
	}
	return o, nil
}

// readTwemproxy reads the pools of a file, or the one that is named.
func readTwemproxy(file string, b []byte, name string) ([]*twemproxyPool, error) {
	var byName map[string]*twemproxyPool
	dec := yaml.NewDecoder(bytes.NewReader(b))
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
	fmt.Fprintf(b, "# From pool %s of %s. Keys stay where they are.\n", plainly(p.name), plainly(filepath.Base(file)))
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
func together(b *strings.Builder, pools []*twemproxyPool, file string) (taken []*twemproxyPool, err error) {
	fmt.Fprintf(b, "# From %s. Keys stay where they are.\n", plainly(filepath.Base(file)))
	var listeners, bodies strings.Builder
	clients, bounded, names := 0, true, make(map[string]bool)
	for _, p := range pools {
		if p.Redis {
			fmt.Fprintf(b, "# Pool %s is left out: this router speaks memcached only.\n", plainly(p.name))
			continue
		}
		distribution, err := p.check()
		if err != nil {
			return nil, fmt.Errorf("%s: pool %s: %w", file, p.name, err)
		}
		taken = append(taken, p)
		name := newPoolName(p.name, names)
		if name != p.name {
			fmt.Fprintf(b, "# Pool %q is named %s here.\n", p.name, name)
		}
		if listen := p.listen(b, fmt.Sprintf("pool %s: ", name)); listen != "" {
			fmt.Fprintf(&listeners, "  - {address: %q, routes: [{pool: %q}]}\n", listen, name)
		}
		if p.Clients != nil {
			clients += *p.Clients
		} else {
			bounded = false
		}
		fmt.Fprintf(&bodies, "  %q:\n", name)
		p.foreign(&bodies, "    ")
		p.body(&bodies, "    ", distribution)
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("%s: no pool for memcached in it", file)
	}
	if bounded {
		fmt.Fprintf(b, "max_clients: %d # of all pools together\n", clients)
	}
	fmt.Fprintf(b, "listen:\n%spools:\n%s", &listeners, &bodies)
	return taken, nil
}

// listen returns our address for the pool's clients, empty if there is none.
func (p *twemproxyPool) listen(b *strings.Builder, where string) string {
	if p.ours = p.Listen; !strings.HasPrefix(p.Listen, "/") {
		return p.Listen
	}
	path, mode, ok := strings.Cut(p.Listen, " ")
	if ok {
		fmt.Fprintf(b, "# %slisten: permissions %s have no counterpart; use those of the folder.\n", where, plainly(strings.TrimSpace(mode)))
	}
	p.ours = "unix:" + path
	return p.ours
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
	fmt.Fprintf(b, "%sservers:\n", indent)
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
