package admin

import (
	"fmt"
	"regexp"
	"strings"
)

// The scripts of the page are modules, one for each of its parts. A browser would ask for them
// one after the other, so they are put together into one.

var (
	importing = regexp.MustCompile(`(?m)^import (\{[^}]*\}) from '\./(\w+)\.js'$`)
	exporting = regexp.MustCompile(`(?m)^export ((?:const|function|async function) ([\w$]+))`)
)

// bundle is modules that are put together.
type bundle struct {
	read  func(name string) string
	text  strings.Builder
	begun map[string]bool
}

// bundled puts a module together with those that it imports, and they do.
func bundled(main string, read func(name string) string) string {
	b := bundle{read: read, begun: make(map[string]bool)}
	b.text.WriteString("const modules = {}\n")
	b.add(main)
	return b.text.String()
}

// add adds a module behind those that it imports: as a function that is called once, so that
// its names are its own, and returns what it exports.
func (b *bundle) add(name string) {
	if b.begun[name] {
		return
	}
	b.begun[name] = true
	text := b.read(name)
	for _, m := range importing.FindAllStringSubmatch(text, -1) {
		b.add(m[2])
	}
	var exports []string
	for _, m := range exporting.FindAllStringSubmatch(text, -1) {
		exports = append(exports, m[2])
	}
	text = importing.ReplaceAllString(text, "const ${1} = modules.${2}")
	text = exporting.ReplaceAllString(text, "${1}")
	fmt.Fprintf(&b.text, "\nmodules.%s = (() => {\n%s\nreturn {%s}\n})()\n", name, strings.TrimSpace(text), strings.Join(exports, ", "))
}
