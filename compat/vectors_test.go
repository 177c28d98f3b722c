package compat

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vector is one row of a recording: the key, and where the real program put it.
type vector struct {
	key  string
	home int
}

func readVectors(t *testing.T, file string) []vector {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	vectors := make([]vector, 0, len(rows))
	for _, row := range rows[1:] {
		home, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, vector{row[0], home})
	}
	return vectors
}

// serversOf returns the list of servers that a recording's name implies.
func serversOf(name string) []Server {
	var servers []Server
	weights := []int{1, 1, 1, 1}
	if strings.Contains(name, "_w1-2-3-10") {
		weights = []int{1, 2, 3, 10}
	}
	if strings.Contains(name, "fractions") {
		weights = []int{2500, 10000, 5000, 9000}
	}
	if strings.Contains(name, "25servers") {
		weights = slices.Repeat([]int{1}, 25)
	}
	for i, w := range weights {
		s := Server{Addr: fmt.Sprintf("127.0.0.1:%d", 31211+i), Weight: w}
		switch {
		case len(weights) == 25:
			s.Addr = fmt.Sprintf("127.0.0.1:%d", 31301+i)
		case strings.Contains(name, "unix"):
			s.Addr = fmt.Sprintf("unix:/tmp/cacherouter-%d.sock", i)
		case strings.Contains(name, "port11211"):
			s.Addr = fmt.Sprintf("127.0.0.%d:11211", 2+i)
		}
		if strings.Contains(name, "named") {
			s.Name = fmt.Sprintf("server%d", 1+i)
		}
		if strings.Contains(name, "oddnames") {
			s.Name = []string{"zz", "b", "aaa", "c"}[i]
		}
		servers = append(servers, s)
	}
	if strings.Contains(name, "_turned") {
		slices.Reverse(servers)
		for i := range servers {
			servers[i].Weight = weights[i]
		}
	}
	return servers
}

// configOf returns the configuration that a recording's name describes; testdata/README.md has the names.
func configOf(t *testing.T, name string) Config {
	t.Helper()
	c := Config{Servers: serversOf(name)}
	words := strings.Split(name, "_")
	switch words[0] {
	case "twemproxy":
		c.Distribution = "twemproxy-" + words[1]
		c.Hash = hashIn(name, twemproxyHashes)
		if strings.Contains(name, "hashtag") {
			c.HashTag = "{}"
		}
	case "libmemcached":
		c.Distribution = libmemcachedIn(name)
		c.Hash = hashIn(name, []string{"md5", "crc", "fnv1_32", "fnv1_64", "fnv1a_32", "fnv1a_64", "hsieh", "murmur", "jenkins"})
	case "nginx":
		c.Distribution = "nginx-consistent"
	case "mcrouter":
		c.Distribution = "mcrouter-" + words[1]
		if strings.Contains(name, "salt_foo") {
			c.Seed = "foo"
		}
	case "mcproxy":
		mcproxyIn(&c, name)
	default:
		t.Fatalf("nothing known of %s", name)
	}
	return c
}

// hashIn returns the longest of the names that the recording's name contains, or "".
func hashIn(name string, hashes []string) string {
	found := ""
	for _, hash := range hashes {
		if strings.Contains(name+"_", "_"+hash+"_") && len(hash) > len(found) {
			found = hash
		}
	}
	return found
}

func libmemcachedIn(name string) string {
	switch {
	case strings.Contains(name, "unweighted"):
		return "libmemcached-ketama"
	case strings.Contains(name, "weighted"):
		return "libmemcached-ketama-weighted"
	case strings.Contains(name, "spy"):
		return "libmemcached-spy"
	case strings.Contains(name, "consistent"):
		return "libmemcached-consistent"
	default:
		return "libmemcached-modula"
	}
}

func mcproxyIn(c *Config, name string) {
	c.Distribution = "mcproxy-jump"
	if words := strings.Split(name, "_"); words[1] == "ring" {
		c.Distribution, c.Mode = "mcproxy-ring", words[2]
	}
	c.Hash = hashIn(name, []string{"md5", "xxh3"})
	switch {
	case strings.Contains(name, "seed_foo"):
		c.Seed = "foo"
	case strings.Contains(name, "tags"):
		c.HashTag = "{}"
	case strings.Contains(name, "stop"):
		c.HashStop = "::"
	}
}

// live returns the configuration without the servers that were down, and the positions of the others.
func live(name string, c Config) (Config, []int) {
	var position []int
	var servers []Server
	for i, s := range c.Servers {
		if !strings.HasSuffix(name, fmt.Sprint("_ejected", i)) {
			position = append(position, i)
			servers = append(servers, s)
		}
	}
	c.Servers = servers
	return c, position
}

// Every key of every recording is placed where the real program placed it.
func TestRecordedPlacements(t *testing.T) {
	files, err := filepath.Glob("testdata/*.csv")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		t.Run(name, func(t *testing.T) {
			c, position := live(name, configOf(t, name))
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			vectors := readVectors(t, file)
			if len(vectors) != 1000 {
				t.Fatalf("%d rows, want 1000", len(vectors))
			}
			wrong := 0
			for _, v := range vectors {
				got := p.Pick(nil, p.Hash([]byte(v.key)), 1)
				if position[got[0]] != v.home {
					wrong++
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d keys elsewhere, as %s with hash %s", wrong, len(vectors), c.Distribution, p.HashName())
			}
		})
	}
}
