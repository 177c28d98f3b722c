package compat

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"
)

// keyHashes are all key hashes by the names that twemproxy and libmemcached give them; where both have a name, they agree.
// All but xxh64, xxh3 and ch3 have 32 bits.
var keyHashes = map[string]func([]byte) uint64{
	"ch3":           ch3,
	"crc31":         crc31, // of mcrouter
	"crc":           crc15, // libmemcached's name for twemproxy's crc32
	"crc16":         crc16,
	"crc32":         crc15,
	"crc32a":        func(key []byte) uint64 { return uint64(crc32.ChecksumIEEE(key)) },
	"default":       oneAtATime, // libmemcached's name
	"fnv1_32":       fnv1x32,
	"fnv1_64":       fnv1x64,
	"fnv1a_32":      fnv1ax32,
	"fnv1a_64":      fnv1ax64,
	"hsieh":         hsieh,
	"jenkins":       jenkins,
	"md5":           md5Word,
	"murmur":        murmur2,
	"murmur3":       murmur3,
	"one_at_a_time": oneAtATime,
	"xxh3":          xxh3Sum,
	"xxh64":         xxhash.Sum64,
}

var (
	twemproxyHashes = []string{"one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"}

	libmemcachedHashes = []string{"default", "one_at_a_time", "md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins", "murmur3"}
)

// Hash returns the key hash of a name, such as twemproxy's fnv1a_64, libmemcached's crc, or xxh64, the one the router's own placements use.
// It returns an error if there is none. The function does not allocate and does not keep the key.
func Hash(name string) (func(key []byte) uint64, error) {
	if hash, ok := keyHashes[name]; ok {
		return hash, nil
	}
	names := make([]string, 0, len(keyHashes))
	for name := range keyHashes {
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("unknown hash %q: want one of %s", name, strings.Join(names, " "))
}

// Tagged returns a hash of only that part of a key that stands between the first byte of the two-byte tag and the next second one, so that keys can be
// kept together: with "{}", {user:1}:a and {user:1}:b are hashed alike. A key without a tag, or with an empty one, is hashed whole, as in twemproxy.
func Tagged(hash func([]byte) uint64, tag string) (func(key []byte) uint64, error) {
	if len(tag) != 2 {
		return nil, fmt.Errorf("hash tag %q: want two bytes", tag)
	}
	return func(key []byte) uint64 {
		if inner, ok := between(key, tag[0], tag[1]); ok && len(inner) > 0 {
			key = inner
		}
		return hash(key)
	}, nil
}

// tagged is Tagged as memcached's proxy does it: an empty tag is hashed as the empty string.
func tagged(hash func([]byte) uint64, tag string) (func([]byte) uint64, error) {
	if len(tag) != 2 {
		return nil, fmt.Errorf("hash tag %q: want two bytes", tag)
	}
	return func(key []byte) uint64 {
		if inner, ok := between(key, tag[0], tag[1]); ok {
			key = inner
		}
		return hash(key)
	}, nil
}

func between(key []byte, left, right byte) (inner []byte, ok bool) {
	from := bytes.IndexByte(key, left) + 1
	if from == 0 {
		return nil, false
	}
	n := bytes.IndexByte(key[from:], right)
	if n < 0 {
		return nil, false
	}
	return key[from : from+n], true
}

// stopped hashes only what stands before the stop.
func stopped(hash func([]byte) uint64, stop string) (func([]byte) uint64, error) {
	if len(stop) < 2 {
		return nil, fmt.Errorf("hash stop %q: want at least two bytes", stop)
	}
	end := []byte(stop)
	return func(key []byte) uint64 {
		if n := bytes.Index(key, end); n >= 0 {
			key = key[:n]
		}
		return hash(key)
	}, nil
}

// setHash chooses the key hash by the rules of the program and wraps it as configured.
func (p *Placement) setHash(c Config) error {
	program, _, _ := strings.Cut(c.Distribution, "-")
	if c.Hash != "" && c.Distribution != "libmemcached-ketama-weighted" {
		allowed := hashesOf(program)
		if program == "mcrouter" {
			allowed = []string{p.hashed} // its placements have one each
		}
		if !slices.Contains(allowed, c.Hash) {
			return fmt.Errorf("unknown hash %q: want one of %s", c.Hash, strings.Join(allowed, " "))
		}
		p.hashed = c.Hash
	}
	if p.hash == nil { // else the hash knows more than its name
		p.hash = keyHashes[p.hashed]
	}
	if err := p.setSeed(c, program); err != nil {
		return err
	}
	if c.Mode != "" && c.Distribution != "mcproxy-ring" {
		return errors.New("it has no modes")
	}
	return p.setFilter(c, program)
}

func hashesOf(program string) []string {
	switch program {
	case "twemproxy":
		return twemproxyHashes
	case "libmemcached":
		return libmemcachedHashes
	case "nginx":
		return []string{"crc32a"}
	case "mcproxy":
		return []string{"xxh3", "md5"}
	default:
		return append([]string{"xxh64"}, twemproxyHashes...)
	}
}

func libmemcachedHash(name string) (func([]byte) uint64, error) {
	if !slices.Contains(libmemcachedHashes, name) {
		return nil, fmt.Errorf("unknown hash %q: want one of %s", name, strings.Join(libmemcachedHashes, " "))
	}
	return Hash(name)
}

// setSeed seeds the key hash. MD5 takes no seed, in the proxy as here.
func (p *Placement) setSeed(c Config, program string) (err error) {
	switch {
	case c.Seed == "":
	case p.hashed == "ch3-weighted":
	case program == "mcrouter":
		p.hash, err = salted(p.hashed, c.Seed)
	case program != "mcproxy":
		return errors.New("it has no seed")
	case p.hashed == "xxh3":
		seed := xxh3.HashString(c.Seed)
		p.hash = func(key []byte) uint64 { return xxh3.HashSeed(key, seed) }
	}
	return err
}

func (p *Placement) setFilter(c Config, program string) (err error) {
	switch {
	case c.HashTag != "" && c.HashStop != "":
		return errors.New("hash tag and hash stop exclude each other")
	case c.HashStop != "":
		if program != "mcproxy" {
			return errors.New("it has no hash stop")
		}
		p.hash, err = stopped(p.hash, c.HashStop)
	case c.HashTag != "" && program == "mcproxy":
		p.hash, err = tagged(p.hash, c.HashTag)
	case c.HashTag != "":
		if program == "libmemcached" || program == "nginx" || program == "mcrouter" {
			return errors.New("it has no hash tags")
		}
		p.hash, err = Tagged(p.hash, c.HashTag)
	}
	return err
}

// largestHash returns the largest value of a key hash as rings see it.
func largestHash(name string) uint64 {
	if name == "crc" || name == "crc32" {
		return 0x7fff
	}
	return math.MaxUint32
}

func xxh3Sum(key []byte) uint64 { return xxh3.Hash(key) }

func md5Word(key []byte) uint64 {
	sum := md5.Sum(key)
	return uint64(binary.LittleEndian.Uint32(sum[:]))
}
