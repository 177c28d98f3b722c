package mcrouter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth is how deep values may lie in each other.
const maxDepth = 200

// value is a JSON value and where it stands. A nil one is one that is not there.
type value struct {
	kind   kind
	text   string   // of a text, or a number as it is written
	truth  bool     // of a boolean
	items  []*value // of a list
	fields []field  // of an object, as they stand in the file
	line   int
	path   string
	seen   bool // whether what it says was taken over, or spoken of
}

type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

type field struct {
	name  string
	value *value
}

// get returns a field of an object.
func (v *value) get(name string) *value {
	if v != nil {
		for _, f := range v.fields {
			if f.name == name {
				return f.value
			}
		}
	}
	return nil
}

// take is get for who sees to what the field says.
func (v *value) take(name string) *value {
	f := v.get(name)
	f.see()
	return f
}

// see notes that what a value says is seen to.
func (v *value) see() {
	if v != nil {
		v.seen = true
	}
}

// seeAll notes that for all that is in a value.
func (v *value) seeAll() {
	if v == nil {
		return
	}
	v.seen = true
	for _, item := range v.items {
		item.seeAll()
	}
	for _, f := range v.fields {
		f.value.seeAll()
	}
}

// is reports whether a value is there and of a kind.
func (v *value) is(k kind) bool { return v != nil && v.kind == k }

// string returns a text; def if the value is not there.
func (v *value) string(def string) (string, error) {
	switch {
	case v == nil:
		return def, nil
	case v.kind != text:
		return "", v.fault("is %s, want a string", v.kind)
	}
	return v.text, nil
}

// float returns a number; def if the value is not there.
func (v *value) float(def float64) (float64, error) {
	if v == nil {
		return def, nil
	}
	var f float64
	if v.kind != number || json.Unmarshal([]byte(v.text), &f) != nil {
		return 0, v.fault("is not a number")
	}
	return f, nil
}

// int returns a number without fraction; def if the value is not there.
func (v *value) int(def int64) (int64, error) {
	if v == nil {
		return def, nil
	}
	var n int64
	if v.kind != number || json.Unmarshal([]byte(v.text), &n) != nil {
		return 0, v.fault("is not a whole number")
	}
	return n, nil
}

// fault is what is wrong with a value.
func (v *value) fault(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if v.path == "" { // the whole
		return fmt.Errorf("line %d: %w", v.line, err)
	}
	return fmt.Errorf("line %d: %s: %w", v.line, v.path, err)
}

// parse reads JSON as mcrouter does: with comments, from // to the end of the line and from /* to */, and with a comma that may stand
// behind the last one of a list or an object.
func parse(b []byte) (*value, error) {
	b, err := blankComments(b)
	if err != nil {
		return nil, err
	}
	blankCommas(b)
	p := &parser{text: b, dec: json.NewDecoder(bytes.NewReader(b)), line: 1}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: something follows the configuration", p.here())
	}
	return v, nil
}

type parser struct {
	text []byte
	dec  *json.Decoder
	at   int // what is before it is counted
	line int // of at
}

// here returns the line of what was read last.
func (p *parser) here() int {
	end := min(int(p.dec.InputOffset()), len(p.text))
	p.line += bytes.Count(p.text[p.at:end], []byte("\n"))
	p.at = end
	return p.line
}

// token returns the next one and its line.
func (p *parser) token() (json.Token, int, error) {
	t, err := p.dec.Token()
	line := p.here()
	if errors.Is(err, io.EOF) {
		err = errors.New("ends too early")
	}
	if err != nil {
		return nil, line, fmt.Errorf("line %d: %w", line, err)
	}
	return t, line, nil
}

// value reads the next one.
func (p *parser) value(path string, depth int) (*value, error) {
	t, line, err := p.token()
	if err != nil {
		return nil, err
	}
	v := &value{line: line, path: path}
	if depth > maxDepth {
		return nil, v.fault("lies too deep")
	}
	switch t := t.(type) {
	case nil:
	case bool:
		v.kind, v.truth = boolean, t
	case json.Number:
		v.kind, v.text = number, t.String()
	case string:
		v.kind, v.text = text, t
	case json.Delim:
		if t == '[' {
			v.kind = list
			err = p.list(v, depth)
		} else {
			v.kind = object
			err = p.object(v, depth)
		}
	}
	return v, err
}

func (p *parser) list(v *value, depth int) error {
	for p.dec.More() {
		item, err := p.value(fmt.Sprintf("%s[%d]", v.path, len(v.items)), depth+1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, _, err := p.token() // the end
	return err
}

func (p *parser) object(v *value, depth int) error {
	for p.dec.More() {
		t, line, err := p.token()
		if err != nil {
			return err
		}
		name := t.(string) // the decoder sees to that
		if v.get(name) != nil {
			return fmt.Errorf("line %d: %s is there twice", line, join(v.path, name))
		}
		f, err := p.value(join(v.path, name), depth+1)
		if err != nil {
			return err
		}
		v.fields = append(v.fields, field{name, f})
	}
	_, _, err := p.token() // the end
	return err
}

// join returns the path of a field: a name with odd characters stands in quotes.
func join(path, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		name = fmt.Sprintf("%q", name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// blankComments puts blanks in the place of comments, so that lines stay what they are.
func blankComments(b []byte) ([]byte, error) {
	b = bytes.Clone(b)
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			i = stringEnd(b, i)
		case bytes.HasPrefix(b[i:], []byte("//")):
			for ; i < len(b) && b[i] != '\n'; i++ {
				b[i] = ' '
			}
		case bytes.HasPrefix(b[i:], []byte("/*")):
			n := bytes.Index(b[i+2:], []byte("*/"))
			if n < 0 {
				return nil, fmt.Errorf("line %d: a comment that does not end", 1+bytes.Count(b[:i], []byte("\n")))
			}
			for end := i + n + 4; i < end; i++ {
				if b[i] != '\n' {
					b[i] = ' '
				}
			}
			i--
		}
	}
	return b, nil
}

// blankCommas puts blanks in the place of commas that stand before the end of a list or an object.
func blankCommas(b []byte) {
	comma := -1 // the last one, if only blanks follow
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case ']', '}':
			if comma >= 0 {
				b[comma] = ' '
			}
		case '"':
			i = stringEnd(b, i)
		}
		comma = -1
		if i < len(b) && b[i] == ',' {
			comma = i
		}
	}
}

// stringEnd returns where the string ends that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}
