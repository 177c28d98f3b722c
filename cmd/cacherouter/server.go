package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// serverConfig is one server of a pool: [name=]address[@weight].
type serverConfig struct {
	Name    string // the address unless given
	Address string // host:port, or unix: and a path
	Weight  int    // 1 unless given
	Zone    string // where it is; only in the form of a mapping

	line int // in its file; 0 if it was a flag
}

// UnmarshalText reads the short form.
func (s *serverConfig) UnmarshalText(b []byte) error {
	text := string(b)
	s.Weight = 1
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		w, err := strconv.Atoi(text[i+1:])
		if err != nil {
			return fmt.Errorf("server %q: weight %q is not a number", text, text[i+1:])
		}
		s.Weight, text = w, text[:i]
	}
	s.Name, s.Address = text, text
	if name, addr, ok := strings.Cut(text, "="); ok {
		s.Name, s.Address = name, addr
	}
	return nil
}

// UnmarshalYAML reads the short form, or a mapping of name, address, weight and zone.
func (s *serverConfig) UnmarshalYAML(n *yaml.Node) error {
	s.line = n.Line
	if n.Kind == yaml.ScalarNode {
		if err := s.UnmarshalText([]byte(n.Value)); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		return nil
	}
	s.Weight = 1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var err error
		switch key.Value {
		case "name":
			err = value.Decode(&s.Name)
		case "address":
			err = value.Decode(&s.Address)
		case "weight":
			err = value.Decode(&s.Weight)
		case "zone":
			err = value.Decode(&s.Zone)
		default:
			err = fmt.Errorf("line %d: field %s not found in a server: want name, address, weight or zone", key.Line, key.Value)
		}
		if err != nil {
			return err
		}
	}
	if s.Name == "" {
		s.Name = s.Address
	}
	return nil
}

// serverError is a fault of one server, and where in the file it stands.
type serverError struct {
	line int // 0 if it was a flag
	err  error
}

func (e *serverError) Error() string   { return e.err.Error() }
func (e *serverError) Unwrap() error   { return e.err }
func (e *serverError) lineInFile() int { return e.line }

// fault is an error of the server as an element of a list.
func (s *serverConfig) fault(list []string, format string, args ...any) error {
	return badField(&serverError{s.line, fmt.Errorf(format, args...)}, list...)
}

// String returns the server as where prints it: its address, with its name before it if
// it has one of its own.
func (s serverConfig) String() string {
	if s.Name == s.Address {
		return s.Address
	}
	return s.Name + "=" + s.Address
}

// check says what is wrong with the server by itself, as an element of a list.
func (s *serverConfig) check(list ...string) error {
	if s.Name == "" {
		return s.fault(list, "server %q: the name is empty", s.Address)
	}
	if err := checkAddress(s.Address); err != nil {
		return s.fault(list, "server %s: %w", s.Name, err)
	}
	if s.Weight < 1 || s.Weight > 65535 {
		return s.fault(list, "server %s: weight %d is not between 1 and 65535", s.Name, s.Weight)
	}
	return nil
}

// checkAddress accepts host:port and "unix:" with a path.
func checkAddress(a string) error {
	if path, ok := strings.CutPrefix(a, "unix:"); ok {
		if path == "" {
			return fmt.Errorf("address %q has no path", a)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(a)
	if err != nil {
		return fmt.Errorf("address %q is not host:port", a)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("address %q has no valid port", a)
	}
	return nil
}

// checkServers says what is wrong with the list as a whole.
func checkServers(servers []serverConfig) error {
	list := []string{"pool", "servers"}
	if len(servers) == 0 {
		return badField(errors.New("want at least one server"), list...)
	}
	names, addrs := make(map[string]bool), make(map[string]bool)
	for i := range servers {
		s := &servers[i]
		if err := s.check(list...); err != nil {
			return err
		}
		if names[s.Name] {
			return s.fault(list, "server %s: the name is there twice", s.Name)
		}
		if addrs[s.Address] {
			return s.fault(list, "server %s: the address %s is there twice", s.Name, s.Address)
		}
		names[s.Name], addrs[s.Address] = true, true
	}
	return nil
}
