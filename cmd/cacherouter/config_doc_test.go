package main

import (
	"fmt"
	"reflect"
	"strings"
)

// configDoc returns docs/configuration.md, made from the tags and defaults of config.
func configDoc() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"<!-- Made from the code: go test ./cmd/cacherouter -run ConfigDoc -update -->\n\n" +
		"One YAML file, given with `--config`. Every field may be left out but where the servers are: `pool.servers`, or another of the sources, which may be combined. An unknown field is an error. " +
		"Durations are written as in `250ms`, `1s`, `2m`; sizes are bytes. `cacherouter check --config FILE` says what is wrong, with file, line and field.\n\n" +
		"```yaml\nlisten: [127.0.0.1:11311]\npool:\n  servers:\n    - cache-a=10.0.0.1:11211\n    - cache-b=10.0.0.2:11211@2 # weight 2\n```\n\n" +
		"| field | default | meaning |\n|---|---|---|\n")
	writeFields(&b, "", reflect.ValueOf(defaultConfig()))
	b.WriteString("\nA reload (SIGHUP, `cacherouter reload`, `POST /api/v1/reload`, or `reload.watch`) reads the file again, and no request is lost. It takes over what is under `pool`, `pools`, `routes`, `listen[].routes` and `reload`, " +
		"but not where a pool's servers come from, nor its `tls`, `passwords` and `announce`, nor whether it has `large_values`; those, and all else, take an upgrade, which clients do not notice. operations.md says more. " +
		"Keys, certificates and password files are read again whenever they change. A file that does not check changes nothing.\n")
	return b.String()
}

// writeFields writes one row for each field of a section.
func writeFields(b *strings.Builder, prefix string, section reflect.Value) {
	for i := range section.NumField() {
		f, v := section.Type().Field(i), section.Field(i)
		if !f.IsExported() {
			continue
		}
		name := prefix + f.Tag.Get("yaml")
		if v.Kind() != reflect.Struct {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, defaultText(v), f.Tag.Get("doc"))
		}
		if inner, ok := innerSection(v); ok {
			writeFields(b, name+inner.suffix, inner.value)
		}
	}
}

// section is a section of the configuration within another.
type section struct {
	suffix string // of its name, before a field's
	value  reflect.Value
}

// innerSection returns the section that a field holds: itself, behind a pointer, or in
// each element of a list. One that has no doc of its own is no section.
func innerSection(v reflect.Value) (section, bool) {
	t, suffix := v.Type(), "."
	if t.Kind() == reflect.Slice {
		t, suffix = t.Elem(), "[]."
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || t.Field(0).Tag.Get("doc") == "" {
		return section{}, false
	}
	if v.Kind() == reflect.Struct {
		return section{suffix, v}, true
	}
	return section{suffix, reflect.Zero(t)}, true
}

func defaultText(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), fmt.Sprint(v.Interface()) == "", (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0:
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}
