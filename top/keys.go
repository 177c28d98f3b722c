package top

import "strings"

// key is what somebody asks for by pressing a key.
type key int

const (
	quit key = iota
	next
	before
	up
	down
	pageUp
	pageDown
)

// bindings are the keys as terminals send them, the longest first.
var bindings = []struct {
	sent string
	key  key
}{
	{"\x1b[5~", pageUp}, {"\x1b[6~", pageDown},
	{"\x1b[C", next}, {"\x1bOC", next}, {"\t", next},
	{"\x1b[D", before}, {"\x1bOD", before}, {"\x1b[Z", before},
	{"\x1b[A", up}, {"\x1bOA", up}, {"\x1b[B", down}, {"\x1bOB", down},
	{"q", quit}, {"Q", quit}, {"\x03", quit},
}

// keysIn returns what is asked for by what a terminal sent; the rest of it is ignored.
func keysIn(sent string) (keys []key) {
	for sent != "" {
		rest := sent[1:]
		for _, b := range bindings {
			if after, is := strings.CutPrefix(sent, b.sent); is {
				keys, rest = append(keys, b.key), after
				break
			}
		}
		sent = rest
	}
	return keys
}
