package mcrouter

import "strings"

// maxHandles bounds the route handles of one list.
const maxHandles = 1 << 14

// handle is a route handle: its type, and what says more of it.
type handle struct {
	kind string // PoolRoute …
	body *value // an object, the text behind the bar of a short form, or nil
	at   *value // where it stands
}

// field returns a field of a handle that is written as an object.
func (h *handle) field(name string) *value { return h.body.get(name) }

// list returns the handles that a value comes to. Names and short forms are resolved.
func (c *Config) list(v *value) ([]handle, error) { return c.resolve(v, nil) }

// one returns the handle that a value comes to.
func (c *Config) one(v *value) (handle, error) {
	all, err := c.list(v)
	switch {
	case err != nil:
		return handle{}, err
	case len(all) != 1:
		return handle{}, v.fault("%d route handles, want one", len(all))
	}
	return all[0], nil
}

// resolve is list; above are the names that led here.
func (c *Config) resolve(v *value, above []string) (all []handle, err error) {
	switch v.kind {
	case list:
		v.see()
		for _, item := range v.items {
			some, err := c.resolve(item, above)
			if err != nil {
				return nil, err
			}
			if all = append(all, some...); len(all) > maxHandles {
				return nil, v.fault("comes to more than %d route handles", maxHandles)
			}
		}
		return all, nil
	case object:
		kind, err := v.get("type").string("")
		if err != nil {
			return nil, err
		}
		if kind == "" {
			return nil, v.fault("a route handle without type")
		}
		return []handle{{kind, v, v}}, nil
	case text:
		return c.resolveText(v, above)
	}
	return nil, v.fault("is %s, want a route handle", v.kind)
}

func (c *Config) resolveText(v *value, above []string) ([]handle, error) {
	v.see()
	if v.text == "" {
		return nil, nil // of optional children
	}
	if named := c.named[v.text]; named != nil {
		for _, name := range above {
			if name == v.text {
				return nil, v.fault("goes round in a circle: %s", strings.Join(append(above, v.text), " -> "))
			}
		}
		if all, done := c.resolved[v.text]; done {
			return all, nil
		}
		all, err := c.resolve(named, append(above, v.text))
		if err == nil {
			c.resolved[v.text] = all
		}
		return all, err
	}
	kind, rest, short := strings.Cut(v.text, "|")
	h := handle{kind: kind, at: v}
	if short {
		h.body = &value{kind: text, text: rest, line: v.line, path: v.path, seen: true}
	}
	return []handle{h}, nil
}

// children returns the handles beneath one: those in a field, or what stands behind the bar of the short form.
func (c *Config) children(h handle, field string) ([]handle, error) {
	v := h.body
	if v.is(object) {
		if v = v.get(field); v == nil {
			return nil, nil
		}
	}
	if v == nil {
		return nil, nil
	}
	return c.list(v)
}

// child returns the one handle beneath another that is in a field.
func (c *Config) child(h handle, field string) (handle, error) {
	v := h.field(field)
	if v == nil {
		return handle{}, h.at.fault("%s without %s", h.kind, field)
	}
	return c.one(v)
}
