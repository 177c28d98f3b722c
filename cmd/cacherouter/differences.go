package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// difference is a field that two sections of configurations have otherwise.
type difference struct{ field, from, to string }

// in reports whether the field is one of some, or within one.
func (d difference) in(fields []string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return d.field == f || strings.HasPrefix(d.field, f+".") })
}

// String returns it for people.
func (d difference) String() string { return fmt.Sprintf("%s %s, was %s", d.field, d.to, d.from) }

// compared returns what two values of a configuration have otherwise, whatever fields they have.
// What is no field of a file, such as where something stands in it, makes no difference.
func compared[T any](a, b *T) []difference {
	return differences("", reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

// differences compares two values of a section, or field, of a name.
func differences(name string, a, b reflect.Value) (all []difference) {
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if a.Kind() != reflect.Struct || a.NumField() == 0 || a.Type().Field(0).Tag.Get("yaml") == "" {
		if from, to := fieldText(a), fieldText(b); from != to {
			all = append(all, difference{name, from, to})
		}
		return all
	}
	for i := range a.NumField() {
		if field := a.Type().Field(i).Tag.Get("yaml"); field != "" {
			if name != "" {
				field = name + "." + field
			}
			all = append(all, differences(field, a.Field(i), b.Field(i))...)
		}
	}
	return all
}

// fieldText returns a value as it may stand in a file.
func fieldText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if v.IsNil() || v.Kind() != reflect.Pointer && v.Len() == 0 {
			return "none"
		}
		b, err := yaml.Marshal(v.Interface())
		if err != nil {
			return fmt.Sprint(v.Interface())
		}
		return strings.Join(strings.Fields(string(b)), " ")
	}
	if s := fmt.Sprint(v.Interface()); s != "" {
		return s
	}
	return "none"
}
