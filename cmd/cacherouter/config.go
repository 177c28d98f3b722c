package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"cacherouter/reactor"
	"cacherouter/router"

	"go.yaml.in/yaml/v3"
)

// config is the whole configuration, from a file or from flags. The tag doc is the
// field's line in docs/configuration.md.
type config struct {
	Name           string           `yaml:"name" doc:"This router's name among the others: unique, and the same after a restart. Empty means the host's name with the port of admin, or of the first listener."`
	Listen         []listenerConfig `yaml:"listen" doc:"Addresses for clients, each host:port, or unix: and a path, or a mapping of the fields below."`
	Admin          string           `yaml:"admin" doc:"Address of the admin HTTP server; empty means none."`
	AdminTokenFile string           `yaml:"admin_token_file" doc:"File whose first line is what those must show who drain, undrain or reload by HTTP, at least 16 bytes; read again when it changes. Without one that can be done from the same host, if admin is a loopback address or a unix socket, and else not at all."`
	AdminHosts     []string         `yaml:"admin_hosts" doc:"Names, beside localhost, by which browsers may ask for admin where it is a loopback address: those of a proxy in front of it."`
	Loops          int              `yaml:"loops" doc:"Event loops; 0 means one per processor."`
	Engine         reactor.Engine   `yaml:"engine" doc:"How sockets are served: uring, epoll, portable for goroutines, or auto for the best of those: uring on Linux 6.12 and later where io_uring is not forbidden, as it is by the default filter of Docker; else epoll where there is epoll. The log says which, and why. Where uring is asked for and not to be had, auto is used."`
	DrainDelay     duration         `yaml:"drain_delay" doc:"How long readyz fails before the listeners close on SIGTERM. Set it to the time that your load balancer takes to see it, and more."`
	DrainTimeout   duration         `yaml:"drain_timeout" doc:"How long clients then have to take their replies."`

	MaxClients      int      `yaml:"max_clients" doc:"How many clients may be connected; 0 means as many as there are descriptors."`
	TellFull        bool     `yaml:"tell_full" doc:"Tell a client beyond max_clients so, as memcached does, instead of just closing. Some clients take the line for the answer to their first request."`
	MaxOutstanding  int      `yaml:"max_outstanding" doc:"How many requests a client may have outstanding before it is no longer read."`
	MaxLine         int      `yaml:"max_line" doc:"The longest line of a get, in bytes; a client that sends a longer one is closed, as one is that sends any other line of over 2048."`
	IdleTimeout     duration `yaml:"idle_timeout" doc:"Close clients that ask nothing for so long; 0s means never."`
	SlowTimeout     duration `yaml:"slow_timeout" doc:"Close clients that take none of their replies for so long; 0s means never."`
	Advertise       []string `yaml:"advertise" doc:"Addresses, host:port, of the routers, told to clients that ask for the nodes of the cluster as with ElastiCache; none means that the question is answered with ERROR."`
	AdvertiseSelf   string   `yaml:"advertise_self" doc:"Address, host:port, of this router for clients, instead of advertise: routers tell it to each other, and clients of all that are there and do not drain."`
	AdvertiseSubset int      `yaml:"advertise_subset" doc:"How many of the routers each client is told, those for its address; 0 means all."`

	Zone       string           `yaml:"zone" doc:"Where this router is: reads of copies by zone (pool.copies.zones) prefer the servers there."`
	Pool       poolConfig       `yaml:"pool" doc:"The servers and how keys are placed on them."`
	Pools      poolsConfig      `yaml:"pools" doc:"Several pools instead of one: a mapping of their names to what pool has; see routes.md."`
	Routes     []routeConfig    `yaml:"routes" doc:"Which pool keys go to; see routes.md. May be left out where there is one pool."`
	Clients    []clientsConfig  `yaml:"clients" doc:"What clients may ask, by the networks that they come from; see routes.md."`
	Reload     reloadConfig     `yaml:"reload" doc:"How a changed configuration comes into force."`
	Gossip     gossipConfig     `yaml:"gossip" doc:"The other routers."`
	Announce   []serverConfig   `yaml:"announce" doc:"Servers that this router tells the others of, and itself, if pool.announced is set there; each as in pool.servers. Where pools have names it stands in the pool that the servers are for."`
	Membership membershipConfig `yaml:"membership" doc:"How servers are watched."`
	Log        logConfig        `yaml:"log" doc:"What is told of single requests. Taken over at the start alone."`
}

// poolConfig is a set of servers and how keys are placed on them.
type poolConfig struct {
	Servers        []serverConfig `yaml:"servers" doc:"The servers, each [name=]address[@weight], or a mapping of name, address, weight and zone. The name is what placement hashes; it is the address if none is given. Weights are 1 to 65535."`
	File           string         `yaml:"file" doc:"File with more servers, each [name=]address[@weight] on a line of its own, read again when it changes. A # begins a comment."`
	DNS            []string       `yaml:"dns" doc:"Names and ports, host:port: every address of the name, A and AAAA, is a server, and is its name."`
	SRV            []string       `yaml:"srv" doc:"Names of SRV records, such as _memcache._tcp.example.org: every record is a server, its target and port are its name, wherever its address goes."`
	Resolver       string         `yaml:"resolver" doc:"The DNS server to ask, host:port; empty means the system's."`
	Announced      bool           `yaml:"announced" doc:"Whether servers count that other routers and agents announce."`
	Distribution   string         `yaml:"distribution" doc:"How keys are placed: rendezvous, maglev, ring, or the name of another program's way; see placement.md."`
	Hash           string         `yaml:"hash" doc:"The key hash, where another program's distribution leaves a choice; empty means its default."`
	HashTag        string         `yaml:"hash_tag" doc:"Two characters: only the part of a key between the first one and the next second one is hashed, as in twemproxy, so that keys with that part in common live together; empty means none."`
	HashStop       string         `yaml:"hash_stop" doc:"Only the part of a key before this text is hashed, as with the stop filter of memcached's proxy; empty means none."`
	Seed           string         `yaml:"seed" doc:"The seed of memcached's proxy, or the salt of mcrouter; empty means none."`
	Mode           string         `yaml:"mode" doc:"The mode of mcproxy-ring: ketama, twemproxy, evcache or default; empty is default."`
	TableSize      int            `yaml:"table_size" doc:"Slots of the table: a prime for maglev, such as 65537 or 655373, a power of two from 65536 to 1048576 for rendezvous; 0 means the distribution's default."`
	Points         int            `yaml:"points" doc:"Points of a server of weight 1 on the ring; 0 means 160."`
	Timeout        duration       `yaml:"timeout" doc:"How long a server may take to answer, waiting for a connection included."`
	ConnectTimeout duration       `yaml:"connect_timeout" doc:"How long connecting to a server may take; at most timeout."`
	MaxValue       int            `yaml:"max_value" doc:"The longest value taken from a client, in bytes. A longer one is answered as memcached does."`
	JoinGets       bool           `yaml:"join_gets" doc:"Gets that go to a server at the same time travel as one get of several keys, which costs it and the router less."`
	BulkSize       int            `yaml:"bulk_size" doc:"The size in bytes from which a value travels on a server's second connection."`
	TLS            *clientTLS     `yaml:"tls" doc:"Speak TLS to the servers, 1.2 or later, certificates always verified."`
	Passwords      string         `yaml:"passwords" doc:"File whose first line, user:password, is said to each server, as memcached -Y wants it."`
	FlushAll       bool           `yaml:"flush_all" doc:"Whether clients may flush all servers."`
	OnFailure      string         `yaml:"on_failure" doc:"How a get is answered whose server fails: error or miss."`

	Large largeConfig `yaml:"large_values" doc:"Values that are stored in parts."`

	Bound    boundConfig   `yaml:"bound" doc:"How load that is unevenly spread over the keys is kept from its servers; see bounded.md."`
	Copies   copiesConfig  `yaml:"copies" doc:"Items that live on several servers."`
	Coalesce string        `yaml:"coalesce" doc:"How gets of one key that come at the same time share a request: strict, inflight or off; see hotkeys.md."`
	Hot      hotConfig     `yaml:"hot" doc:"Which keys are hot; see hotkeys.md."`
	Near     nearConfig    `yaml:"near" doc:"The values of hot keys, kept by the router."`
	Limit    limitConfig   `yaml:"limit" doc:"The rate of hot keys."`
	Lease    leaseConfig   `yaml:"lease" doc:"Misses of one key."`
	Refresh  refreshConfig `yaml:"refresh" doc:"Items near their end."`
	Shed     shedConfig    `yaml:"shed" doc:"Requests that are refused while servers have too much to do; see routes.md."`
	Retries  retriesConfig `yaml:"retries" doc:"Reads that are asked again; see routes.md."`

	// Like and Announce are of pools that have names.
	Like     string         `yaml:"like" doc:"Only in pools: another pool, whose fields this one has where it says nothing itself."`
	Announce []serverConfig `yaml:"announce" doc:"Only in pools: servers of this pool that the router tells the others of, as announce does for a single one."`

	Failover string `yaml:"failover" doc:"Only in pools: a pool whose servers take over from those of this one that are away, before the others of this one do; see routes.md."`
	WarmUp   string `yaml:"warm_up" doc:"Only in pools: a pool that is asked for what this one has not, and copied from; see routes.md."`

	name  string
	zone  string // the router's
	parts parts
	table *table // set by validate; nil where no servers are known before others tell
}

// defaultConfig returns what holds where nothing else is said.
func defaultConfig() config {
	return config{
		Listen:         []listenerConfig{{Address: "127.0.0.1:11311"}},
		Admin:          "127.0.0.1:11312",
		Engine:         reactor.Auto,
		DrainTimeout:   duration(10 * time.Second),
		MaxOutstanding: router.DefaultMaxOutstanding,
		MaxLine:        router.DefaultMaxLine,
		SlowTimeout:    duration(5 * time.Minute),
		Pool:           defaultPool(),
		Reload:         defaultReload(),
		Membership:     defaultMembership(),
		Log:            defaultLog(),
	}
}

func defaultPool() poolConfig {
	return poolConfig{
		Distribution:   "rendezvous",
		Timeout:        duration(time.Second),
		ConnectTimeout: duration(time.Second),
		MaxValue:       128 << 20,
		JoinGets:       true,
		BulkSize:       32 << 10,
		FlushAll:       true,
		OnFailure:      "error",
		Bound:          defaultBound(),
		Copies:         defaultCopies(),
		Coalesce:       "strict",
		Hot:            defaultHot(),
		Near:           defaultNear(),
		Lease:          defaultLease(),
		Retries:        defaultRetries(),
	}
}

// loadConfig reads a configuration file and checks it.
func loadConfig(file string) (config, error) {
	c := defaultConfig()
	b, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("cannot read configuration: %w", err)
	}
	return c, c.read(file, b)
}

// read reads the text of a configuration, which replaces what it says, and checks it. The file is for people.
func (c *config) read(file string, b []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return inFile(file, err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: line %d: a second document: want one", file, max(more.Line, 1))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err == nil && len(doc.Content) > 0 && len(c.Pools) > 0 {
		if key, _ := lookUp(doc.Content[0], "pool"); key != nil {
			return fmt.Errorf("%s: line %d: pool: is the short form of pools, which is there, too", file, key.Line)
		}
	}
	if err := c.validate(); err != nil {
		return c.locate(file, b, err)
	}
	return nil
}

// inFile says in which file something is wrong, one line for each fault.
func inFile(file string, err error) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return fmt.Errorf("%s: %w", file, err)
	}
	var all []error
	for _, e := range te.Errors {
		e, _, _ = strings.Cut(e, " in type main.") // Go's name of the section tells nobody anything
		all = append(all, fmt.Errorf("%s: %s", file, e))
	}
	return errors.Join(all...)
}

// fieldError is a fault of one field.
type fieldError struct {
	path []string // of yaml names
	err  error
}

func (e *fieldError) Error() string {
	s := ""
	for _, p := range e.path {
		s += p + ": "
	}
	return s + e.err.Error()
}

func (e *fieldError) Unwrap() error { return e.err }

func badField(err error, path ...string) error {
	if err == nil {
		return nil
	}
	return &fieldError{path, err}
}

// locate adds the line of the faulty field, or of the nearest one around it.
func (c *config) locate(file string, b []byte, err error) error {
	var fe *fieldError
	var doc yaml.Node
	if !errors.As(err, &fe) || yaml.Unmarshal(b, &doc) != nil || len(doc.Content) == 0 {
		return inFile(file, err)
	}
	node, line := doc.Content[0], 1
	for _, name := range fe.path {
		key, value := lookUp(node, name)
		if key == nil {
			break
		}
		node, line = value, key.Line
	}
	if at, ok := fe.err.(interface{ lineInFile() int }); ok && at.lineInFile() > 0 {
		line = at.lineInFile()
	}
	return fmt.Errorf("%s: line %d: %w", file, line, err)
}

func lookUp(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// validate checks what the types do not. Its errors are fieldErrors.
func (c *config) validate() error {
	if len(c.Listen) == 0 {
		return badField(errors.New("want at least one address"), "listen")
	}
	for i := range c.Listen {
		if _, err := c.Listen[i].prepare(nil); err != nil {
			return err
		}
	}
	for _, a := range c.Advertise {
		if err := checkAddress(a); err != nil {
			return badField(err, "advertise")
		}
	}
	if c.Admin != "" {
		if err := checkAddress(c.Admin); err != nil {
			return badField(err, "admin")
		}
	}
	if c.AdminTokenFile != "" {
		if _, err := readToken(c.AdminTokenFile); err != nil {
			return badField(err, "admin_token_file")
		}
	}
	switch {
	case c.Loops < 0 || c.Loops > 1024:
		return badField(fmt.Errorf("%d is not between 0 and 1024", c.Loops), "loops")
	case c.MaxClients < 0:
		return badField(fmt.Errorf("%d is negative", c.MaxClients), "max_clients")
	case c.MaxOutstanding < 1:
		return badField(fmt.Errorf("%d is less than 1", c.MaxOutstanding), "max_outstanding")
	case c.MaxLine < 2048:
		return badField(fmt.Errorf("%d is less than 2048 bytes", c.MaxLine), "max_line")
	case !c.Engine.Known():
		return badField(fmt.Errorf("unknown engine %q: want auto, uring, epoll or portable", c.Engine), "engine")
	}
	if err := c.validateMembership(); err != nil {
		return err
	}
	if err := errors.Join(c.Log.validate(), c.Reload.validate()); err != nil {
		return err
	}
	return c.validatePools()
}

// validateMembership checks what concerns servers and routers that come and go.
func (c *config) validateMembership() error {
	if err := c.Gossip.validate(); err != nil {
		return err
	}
	if err := c.Membership.validate(); err != nil {
		return err
	}
	for i := range c.Announce {
		if err := c.Announce[i].check("announce"); err != nil {
			return err
		}
	}
	alone := c.Gossip.Bind == ""
	if c.AdvertiseSelf != "" {
		if err := checkHostPort(c.AdvertiseSelf); err != nil {
			return badField(err, "advertise_self")
		}
	}
	switch {
	case len(c.Name) > 255:
		return badField(fmt.Errorf("%d bytes are more than 255", len(c.Name)), "name")
	case c.AdvertiseSelf != "" && alone:
		return badField(errors.New("wants gossip, which has no address to bind"), "advertise_self")
	case c.AdvertiseSelf != "" && len(c.Advertise) > 0:
		return badField(errors.New("is instead of advertise, which is there, too"), "advertise_self")
	case len(c.AdvertiseSelf) > 255:
		return badField(errors.New("is longer than 255 bytes"), "advertise_self")
	case c.AdvertiseSubset < 0:
		return badField(fmt.Errorf("%d is negative", c.AdvertiseSubset), "advertise_subset")
	case len(c.Announce) > 0 && alone:
		return badField(errors.New("wants gossip, which has no address to bind"), "announce")
	case !c.Membership.Enabled && !alone:
		return badField(errors.New("wants membership, which is not enabled"), "gossip", "bind")
	}
	for _, p := range c.each() {
		if err := c.validateFound(p, alone); err != nil {
			return c.within(p, err)
		}
	}
	return nil
}

// validateFound checks what a pool wants of membership and gossip.
func (c *config) validateFound(p *poolConfig, alone bool) error {
	short := p == &c.Pool
	for i := range p.Announce {
		if err := p.Announce[i].check("pool", "announce"); err != nil {
			return err
		}
	}
	switch {
	case p.Announced && alone:
		return badField(errors.New("wants gossip, which has no address to bind"), "pool", "announced")
	case !c.Membership.Enabled && p.dynamic() != "":
		return badField(errors.New("wants membership, which is not enabled"), "pool", p.dynamic())
	case short && p.Like != "":
		return badField(errors.New("there is no other pool: want pools"), "pool", "like")
	case short && len(p.Announce) > 0:
		return badField(errors.New("stands at the top where there is one pool"), "pool", "announce")
	case !short && len(c.Announce) > 0:
		return badField(errors.New("stands in the pool that the servers are for, as pools have names"), "announce")
	case len(p.Announce) > 0 && alone:
		return badField(errors.New("wants gossip, which has no address to bind"), "pool", "announce")
	}
	return nil
}

// validate also builds the table of the servers that are known, as that is how it is known
// to be right, and keeps it: a large one takes a while.
func (p *poolConfig) validate() error {
	switch {
	case p.OnFailure != "error" && p.OnFailure != "miss":
		return badField(fmt.Errorf("%q is neither error nor miss", p.OnFailure), "pool", "on_failure")
	case p.Timeout == 0:
		return badField(errors.New("must be over 0"), "pool", "timeout")
	case p.ConnectTimeout == 0:
		return badField(errors.New("must be over 0"), "pool", "connect_timeout")
	case p.MaxValue < 1 || p.MaxValue > 1<<30:
		return badField(fmt.Errorf("%d is not between 1 and %d bytes", p.MaxValue, 1<<30), "pool", "max_value")
	case p.BulkSize < 1:
		return badField(fmt.Errorf("%d is less than 1 byte", p.BulkSize), "pool", "bulk_size")
	}
	if _, err := p.upstream(nil); err != nil {
		return err
	}
	if err := p.validateSources(); err != nil {
		return err
	}
	if err := p.validateLoad(); err != nil {
		return err
	}
	if err := p.Large.check(p.MaxValue); err != nil {
		return err
	}
	if err := p.validateRemedies(); err != nil {
		return err
	}
	if err := p.validateOverload(); err != nil {
		return err
	}
	if len(p.Servers) == 0 && p.dynamic() != "" {
		return p.checkOptions()
	}
	var err error
	p.table, err = buildTable(p)
	return err
}
