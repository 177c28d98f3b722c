package compat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// newTwemproxyKetama follows twemproxy 0.5.0's distribution "ketama": MD5 points whatever the key hash, named by the server's name if it has one.
// The order of the servers decides only between equal points.
func newTwemproxyKetama(c Config) (*Placement, error) {
	s := sortedServers(c.Servers)
	s.placer = ketama(s.servers, twemproxyName)
	return &Placement{config: c, hashed: "fnv1a_64", placer: s}, nil
}

// newTwemproxyModula follows its distribution "modula": a table in which a server stands as often as it weighs.
func newTwemproxyModula(c Config) (*Placement, error) {
	s := sortedServers(c.Servers)
	table, err := remainder(weightsOf(s.servers), s.servers)
	s.placer = table
	return &Placement{config: c, hashed: "fnv1a_64", placer: s}, err
}

func twemproxyName(s Server) string {
	if s.Name != "" {
		return s.Name
	}
	return endpointOf(s).dropDefault() // a Unix socket's path keeps a colon at its end
}

// newLibmemcachedKetama follows libmemcached 1.1.4's MEMCACHED_BEHAVIOR_KETAMA and MEMCACHED_DISTRIBUTION_CONSISTENT, which are one: 100 points a server by
// the key hash. As soon as one weight exceeds 1 it silently becomes the weighted ring, though not the weighted ring's key hash.
func newLibmemcachedKetama(c Config) (*Placement, error) {
	return newLibmemcachedRing(c, "default", libmemcachedName)
}

// newLibmemcachedSpy follows MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA_SPY, with the points' names as Java's spymemcached writes them.
// Its clients set the hash to MD5, so that is the default here.
func newLibmemcachedSpy(c Config) (*Placement, error) {
	return newLibmemcachedRing(c, "md5", func(s Server) string {
		e := endpointOf(s)
		return "/" + e.host + ":" + e.decimalPort()
	})
}

func newLibmemcachedRing(c Config, defaultHash string, name func(Server) string) (*Placement, error) {
	p := &Placement{config: c, hashed: defaultHash}
	for _, s := range c.Servers {
		if s.Weight > 1 {
			p.placer = ketama(c.Servers, name)
			return p, nil
		}
	}
	if c.Hash != "" {
		defaultHash = c.Hash
	}
	hash, err := libmemcachedHash(defaultHash)
	if err != nil {
		return nil, err
	}
	r := &points{}
	for i, s := range c.Servers {
		r.addHashed(i, name(s), 100, hash)
	}
	p.placer = r.seal(len(c.Servers))
	return p, nil
}

// newLibmemcachedWeighted follows MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, which is PHP's OPT_LIBKETAMA_COMPATIBLE. It sets the key hash to MD5
// after and in spite of any other choice, so Config.Hash has no effect.
func newLibmemcachedWeighted(c Config) (*Placement, error) {
	if c.Hash != "" {
		if _, err := libmemcachedHash(c.Hash); err != nil {
			return nil, err
		}
	}
	return &Placement{config: c, hashed: "md5", placer: ketama(c.Servers, libmemcachedName)}, nil
}

// newLibmemcachedModula follows MEMCACHED_DISTRIBUTION_MODULA, the default: weights are ignored.
func newLibmemcachedModula(c Config) (*Placement, error) {
	table, err := remainder(ones(len(c.Servers)), c.Servers)
	return &Placement{config: c, hashed: "default", placer: table}, err
}

func libmemcachedName(s Server) string {
	e := endpointOf(s)
	e.port = e.decimalPort()
	return e.dropDefault()
}

// decimalPort is the port as libmemcached prints it: a number, which is 0 for a Unix socket.
func (e endpoint) decimalPort() string {
	n, err := strconv.Atoi(e.port)
	if err != nil {
		n = 0
	}
	return strconv.Itoa(n)
}

// newNginx follows nginx 1.22.1's "hash KEY consistent", which is also Perl's Cache::Memcached::Fast: 160 points per unit of weight, each the
// CRC-32 of host, zero byte, port and the point before it.
func newNginx(c Config) (*Placement, error) {
	r := &points{}
	for i, s := range c.Servers {
		if err := limit(len(r.at)+160*s.Weight, s); err != nil {
			return nil, err
		}
		base := nginxBase(s)
		previous := make([]byte, 4)
		for range 160 * s.Weight {
			h := crc32.Update(base, crc32.IEEETable, previous)
			r.at = append(r.at, point{h, uint32(i)})
			binary.LittleEndian.PutUint32(previous, h)
		}
	}
	return &Placement{config: c, hashed: "crc32a", placer: r.seal(len(c.Servers))}, nil
}

// nginxBase is the checksum all points of a server continue. The host is the text before the last colon, brackets included.
func nginxBase(s Server) uint32 {
	e := endpointOf(s)
	host := e.host
	if e.port != "" {
		host = s.Addr[:len(s.Addr)-len(e.port)-1]
	}
	return crc32.ChecksumIEEE([]byte(host + "\x00" + e.port))
}

// newMcproxyJump follows the proxy inside memcached 1.6.45 with its default, mcp.dist_jump_hash.
func newMcproxyJump(c Config) (*Placement, error) {
	if err := noWeights(c.Servers); err != nil {
		return nil, err
	}
	return &Placement{config: c, hashed: "xxh3", placer: jump(len(c.Servers))}, nil
}

// newMcproxyRing follows its mcp.dist_ring_hash with 160 points a server. Config.Mode names the points, and does not choose the key hash: that stays xxh3
// unless Config.Hash is md5, which is the proxy's hash=mcp.dist_ring_hash.hash.
func newMcproxyRing(c Config) (*Placement, error) {
	if err := noWeights(c.Servers); err != nil {
		return nil, err
	}
	r := &points{}
	for i, s := range c.Servers {
		e := endpointOf(s)
		if e.port == "" {
			return nil, fmt.Errorf("server %q: memcached's proxy has no point names for Unix sockets", s.Addr)
		}
		full := e.host + ":" + e.port
		switch c.Mode {
		case "", "default":
			r.addHashed(i, full, 160, xxh3Sum)
		case "ketama":
			r.addMD5(i, full, 40)
		case "twemproxy":
			r.addMD5(i, e.dropDefault(), 40)
		case "evcache":
			r.addMD5(i, e.host+"/"+full, 40)
		default:
			return nil, fmt.Errorf("unknown mode %q: want ketama, twemproxy, evcache or default", c.Mode)
		}
	}
	return &Placement{config: c, hashed: "xxh3", placer: r.seal(len(c.Servers))}, nil
}

// newModulo is hash modulo the number of servers, weights by repetition: the placement that consistent hashing was invented against.
func newModulo(c Config) (*Placement, error) {
	table, err := remainder(weightsOf(c.Servers), c.Servers)
	return &Placement{config: c, hashed: "xxh64", placer: table}, err
}

// newJump is the jump hash of the key's xxHash64. Only the last server of the list can leave without moving keys of the others.
func newJump(c Config) (*Placement, error) {
	if err := noWeights(c.Servers); err != nil {
		return nil, err
	}
	return &Placement{config: c, hashed: "xxh64", placer: jump(len(c.Servers))}, nil
}

// newMcrouter follows mcrouter's default hash function, Ch3.
func newMcrouter(c Config) (*Placement, error) {
	if err := noWeights(c.Servers); err != nil {
		return nil, err
	}
	n := len(c.Servers)
	if n > 1<<furcShift {
		return nil, errors.New("too many servers")
	}
	home := func(hash uint64) int { return furc(hash, n) }
	return &Placement{config: c, hashed: "ch3", placer: &list{home: home, weights: ones(n), remix: true}}, nil
}

// newMcrouterCRC follows its hash function Crc32: a plain remainder.
func newMcrouterCRC(c Config) (*Placement, error) {
	if err := noWeights(c.Servers); err != nil {
		return nil, err
	}
	table, err := remainder(ones(len(c.Servers)), c.Servers)
	return &Placement{config: c, hashed: "crc31", placer: table}, err
}
