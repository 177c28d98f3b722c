// Package conformance says what a memcached server must answer, byte for byte, and checks any server against it.
//
// It holds two kinds of material under testdata. A case is a client conversation with the bytes that real memcached
// answered, written down once; replaying it needs no second server. A conversation has requests only: it is put to
// two servers, and their transcripts must agree once numbers that may differ (cas tokens, versions, ages) are masked.
// Cases pin the exact contract, conversations cover much more ground per line.
package conformance

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed testdata
var testdata embed.FS

// Cases returns every recorded case in name order, as real memcached 1.6.18 answers.
func Cases() ([]Case, error) { return load("testdata/cases") }

// RouterCases returns the same cases with the answers of a router, which differ from memcached 1.6.18 on purpose in
// the few that testdata/router repeats.
func RouterCases() ([]Case, error) {
	cases, err := Cases()
	if err != nil {
		return nil, err
	}
	overrides, err := load("testdata/router")
	if err != nil {
		return nil, err
	}
	byName := make(map[string]Case, len(overrides))
	for _, o := range overrides {
		o.Variants = "" // the router's own answer does not depend on the release behind it
		byName[o.Name] = o
	}
	for i, c := range cases {
		if o, ok := byName[c.Name]; ok {
			cases[i] = o
			delete(byName, c.Name)
		}
	}
	for name := range byName {
		return nil, fmt.Errorf("cannot use override %s: no case has that name", name)
	}
	return cases, nil
}

// load parses all files of one folder.
func load(dir string) ([]Case, error) {
	names, err := fs.Glob(testdata, path.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("cannot list cases: %w", err)
	}
	var cases []Case
	for _, name := range names {
		text, err := testdata.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read case: %w", err)
		}
		c, err := Parse(strings.TrimSuffix(path.Base(name), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}
