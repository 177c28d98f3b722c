// Package compat places keys where other programs place them, byte for byte: twemproxy, libmemcached and its clients, nginx,
// mcrouter and memcached's own proxy. A fleet that moves from one of them to this router starts with its caches warm.
//
// Everything odd here is odd in the program named: points counted in float32, sign-extended key bytes, a port that is sometimes dropped.
// The order of the servers is part of these placements, as it is there; only twemproxy sorts them itself. For a new fleet use package rendezvous.
package compat

import (
	"fmt"
	"iter"
	"slices"
)

// Server is one memcached server as the other program's configuration lists it.
type Server struct {
	Name   string // the name given beside the address; empty when there is none. Only twemproxy has names.
	Addr   string // host:port, or unix:/path
	Weight int    // 1 to 65535; of mcrouter-weighted-ch3 10000 is mcrouter's 1.0, and the most
}

// Config says which program to follow and what its configuration says.
type Config struct {
	Distribution string   // one of Distributions
	Servers      []Server // in the order of the other program's configuration
	Hash         string   // key hash by the program's own name; empty for the program's default
	HashTag      string   // two bytes: hash only what stands between them, as twemproxy's hash_tag and the "tags" filter of memcached's proxy; empty for none
	HashStop     string   // hash only what stands before it, as the "stop" filter of memcached's proxy; empty for none
	Seed         string   // the seed option of memcached's proxy, or mcrouter's salt; empty for none
	Mode         string   // the omode option of its ring: ketama, twemproxy, evcache or default; empty is default
}

// Placement is another program's placement. It is immutable, and all methods may be called concurrently.
// The zero value is not usable; see New.
type Placement struct {
	config Config
	hash   func([]byte) uint64
	hashed string // the name of the key hash in use
	placer
}

// placer is the part of a placement behind the key hash.
type placer interface {
	Pick(dst []int, hash uint64, n int) []int
	spans(largest uint64) iter.Seq2[uint64, int]
	exact() bool
	digest(b []byte, c Config) []byte
}

// New returns the placement that the configured program makes. It returns an error that names the entry for an unknown name,
// an option that the program does not have, an empty list, a duplicate name or address, or a weight out of range.
func New(c Config) (*Placement, error) {
	c.Servers = slices.Clone(c.Servers)
	build, ok := programs[c.Distribution]
	if !ok {
		return nil, fmt.Errorf("cannot place keys: unknown distribution %q: want one of %v", c.Distribution, Distributions())
	}
	if err := check(c.Servers); err != nil {
		return nil, fmt.Errorf("cannot place keys as %s: %w", c.Distribution, err)
	}
	p, err := build(c)
	if err == nil {
		err = p.setHash(c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot place keys as %s: %w", c.Distribution, err)
	}
	return p, nil
}

// programs holds a constructor for each distribution. It sets the placer, and the default of the key hash.
var programs = map[string]func(Config) (*Placement, error){
	"jump":                         newJump,
	"libmemcached-consistent":      newLibmemcachedKetama,
	"libmemcached-ketama":          newLibmemcachedKetama,
	"libmemcached-ketama-weighted": newLibmemcachedWeighted,
	"libmemcached-modula":          newLibmemcachedModula,
	"libmemcached-spy":             newLibmemcachedSpy,
	"mcproxy-jump":                 newMcproxyJump,
	"mcproxy-ring":                 newMcproxyRing,
	"mcrouter-ch3":                 newMcrouter,
	"mcrouter-crc32":               newMcrouterCRC,
	"mcrouter-weighted-ch3":        newMcrouterWeighted,
	"modulo":                       newModulo,
	"nginx-consistent":             newNginx,
	"twemproxy-ketama":             newTwemproxyKetama,
	"twemproxy-modula":             newTwemproxyModula,
}

// Distributions returns the names that Config.Distribution takes, sorted.
func Distributions() []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Hash returns the program's hash of a key: what Pick takes. It does not allocate and does not keep the key.
func (p *Placement) Hash(key []byte) uint64 { return p.hash(key) }

// HashName returns the name of the key hash in use, which the configuration may have left to the program.
func (p *Placement) HashName() string { return p.hashed }

// Len returns the number of servers.
func (p *Placement) Len() int { return len(p.config.Servers) }

// Pick appends to dst the indexes of the first n distinct servers for a hash, the home first, and returns the longer slice. It appends
// fewer when there are fewer servers, or when float32 rounding left some of them without a point. The home is the program's choice. The others are the servers
// met next on a ring, or a repeated choice among the remaining servers where there is no ring; a smaller n gives a prefix of a larger one.
// It does not allocate when dst has room.
func (p *Placement) Pick(dst []int, hash uint64, n int) []int { return p.placer.Pick(dst, hash, n) }

// Spans yields the key hash's values in ascending order as pairs of a span's last value and its home; the last pair ends at the
// hash's largest value. Walking two placements of one distribution in step gives the share of keys that moves between them: exactly if
// Exact reports true, otherwise from 2^20 samples that are the same for both.
func (p *Placement) Spans() iter.Seq2[uint64, int] { return p.spans(largestHash(p.hashed)) }

// Exact reports whether Spans describes the placement rather than samples of it.
func (p *Placement) Exact() bool { return p.exact() }

// Shares returns each server's share of the hash values of Spans, from 0 to 1, by index.
func (p *Placement) Shares() []float64 {
	counts := make([]uint64, p.Len())
	next := uint64(0)
	for last, home := range p.Spans() {
		counts[home] += last - next + 1
		next = last + 1
	}
	shares := make([]float64, len(counts))
	for i, n := range counts {
		shares[i] = float64(n) / float64(next)
	}
	return shares
}
