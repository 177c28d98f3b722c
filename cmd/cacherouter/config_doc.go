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
		"One YAML file, given with `--config`. Every field may be left out but `pool.servers`. An unknown field is an error. " +
		"Durations are written as in `250ms`, `1s`, `2m`; sizes are bytes. `cacherouter check --config FILE` says what is wrong, with file, line and field.\n\n" +
		"```yaml\nlisten: [127.0.0.1:11311]\npool:\n  servers:\n    - cache-a=10.0.0.1:11211\n    - cache-b=10.0.0.2:11211@2 # weight 2\n```\n\n" +
		"| field | default | meaning |\n|---|---|---|\n")
	writeFields(&b, "", reflect.ValueOf(defaultConfig()))
	b.WriteString("\nOn SIGHUP, or `POST /api/v1/reload` from the same host, the file is read again: `pool.servers`, `pool.distribution`, " +
		"`pool.hash` and `pool.hash_tag` take effect at once and no request is lost; the other fields need a restart. A file that does not check changes nothing.\n")
	return b.String()
}

// writeFields writes one row for each field of a section.
func writeFields(b *strings.Builder, prefix string, section reflect.Value) {
	for i := range section.NumField() {
		f, v := section.Type().Field(i), section.Field(i)
		name := prefix + f.Tag.Get("yaml")
		if v.Kind() == reflect.Struct {
			writeFields(b, name+".", v)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, defaultText(v), f.Tag.Get("doc"))
	}
}

func defaultText(v reflect.Value) string {
	if fmt.Sprint(v.Interface()) == "" || v.Kind() == reflect.Slice && v.Len() == 0 {
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}
