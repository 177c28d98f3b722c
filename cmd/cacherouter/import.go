package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

type importCmd struct {
	From        string `help:"Whose configuration it is: ${enum}; auto takes one that begins with a brace for mcrouter's." enum:"auto,nutcracker,mcrouter" default:"auto"`
	Pool        string `help:"The one pool of nutcracker to import; all of the file if none is named." placeholder:"NAME"`
	RoutePrefix string `help:"What mcrouter's --route-prefix says, if it is given." placeholder:"/REGION/CLUSTER/"`
	Sample      int    `help:"How many keys are compared to prove that keys stay where they are; 0 means none." default:"10000"`
	Seed        uint64 `help:"Chooses those keys." default:"1"`
	Keys        string `help:"File with keys that are compared, too, each on a line." type:"path" placeholder:"FILE"`
	File        string `arg:"" help:"Configuration of nutcracker (twemproxy), YAML, or of mcrouter, JSON." type:"path"`
}

// imported is what becomes of another program's configuration.
type imported struct {
	text    string   // our configuration
	origins []origin // where keys are by the other program's
}

// Run prints our configuration for another program's, and proves that keys stay where they are.
func (c *importCmd) Run(s streams) error {
	b, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("cannot read configuration: %w", err)
	}
	in, err := c.translate(b)
	if err != nil {
		return err
	}
	cfg := defaultConfig()
	if err := cfg.read("what was made of "+c.File, []byte(in.text)); err != nil {
		return err
	}
	keys, err := c.givenKeys()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.out, in.text); err != nil {
		return err
	}
	return c.prove(s.err, &cfg, in.origins, keys)
}

// translate makes our configuration of another program's.
func (c *importCmd) translate(b []byte) (*imported, error) {
	if c.From == "mcrouter" || c.From == "auto" && looksLikeJSON(b) {
		if c.Pool != "" {
			return nil, errors.New("--pool chooses among the pools of nutcracker; those of mcrouter belong together")
		}
		return importMcrouter(c.File, b, c.RoutePrefix)
	}
	if c.RoutePrefix != "" {
		return nil, errors.New("--route-prefix is mcrouter's, and this is a configuration of nutcracker")
	}
	return importTwemproxy(c.File, b, c.Pool)
}

// looksLikeJSON reports whether a text begins with a brace, perhaps behind comments such as mcrouter has.
func looksLikeJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	return bytes.HasPrefix(b, []byte("{")) || bytes.HasPrefix(b, []byte("//")) || bytes.HasPrefix(b, []byte("/*"))
}

// newPoolName makes a name that a pool may have of another program's, and notes it as taken: what it may not contain becomes a dash, and
// one that is taken gets a number.
func newPoolName(name string, taken map[string]bool) string {
	name = strings.Map(func(r rune) rune {
		if checkPoolName(string(r)) != nil {
			return '-'
		}
		return r
	}, cmp.Or(name, "pool"))
	unique := name[:min(len(name), maxPoolName)]
	for n := 2; taken[unique]; n++ {
		tail := fmt.Sprint("-", n)
		unique = name[:min(len(name), maxPoolName-len(tail))] + tail
	}
	taken[unique] = true
	return unique
}

// plainly is a text of another program's as it may stand in a comment of ours.
func plainly(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
