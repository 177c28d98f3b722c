package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"reflect"

	"cacherouter/certs"
	"cacherouter/passwd"
	"cacherouter/reactor"
	"cacherouter/router"

	"go.yaml.in/yaml/v3"
)

// listenerConfig is one address for clients: the address alone, or a mapping.
type listenerConfig struct {
	Address   string        `yaml:"address" doc:"host:port, or unix: and a path."`
	TLS       *serverTLS    `yaml:"tls" doc:"Serve TLS, 1.2 or later."`
	Passwords string        `yaml:"passwords" doc:"File of user:password lines, as for memcached -Y, read again when it changes. Clients must authenticate by the text protocol's first set, or by SASL PLAIN."`
	Routes    []routeConfig `yaml:"routes" doc:"Routes of clients of this listener, instead of those of all."`
	Allow     []string      `yaml:"allow" doc:"Networks that clients may come from, such as 10.0.0.0/8; none means all. Not for unix sockets."`

	line int // in its file; 0 if it was a flag
}

// serverTLS names the files of a listener's TLS; they are read again when they change.
type serverTLS struct {
	Cert     string `yaml:"cert" doc:"Certificate chain, PEM."`
	Key      string `yaml:"key" doc:"Its key, PEM."`
	ClientCA string `yaml:"client_ca" doc:"Authorities of which clients must show a certificate; none means that they need not."`
}

// UnmarshalText reads an address alone.
func (l *listenerConfig) UnmarshalText(b []byte) error {
	l.Address = string(b)
	return nil
}

// UnmarshalYAML reads an address alone or a mapping.
func (l *listenerConfig) UnmarshalYAML(n *yaml.Node) error {
	l.line = n.Line
	if n.Kind == yaml.ScalarNode {
		return l.UnmarshalText([]byte(n.Value))
	}
	type plain listenerConfig // without this method
	return strictly(n, (*plain)(l))
}

// strictly decodes a mapping and refuses fields that are not known. The decoder's own
// strictness is lost where a type decodes itself.
func strictly(n *yaml.Node, to any) error {
	if err := n.Decode(to); err != nil {
		return err
	}
	if unknown := unknownKeys(n, to); len(unknown) > 0 {
		return fmt.Errorf("line %d: field %s not found", unknown[0].Line, unknown[0].Value)
	}
	return nil
}

// unknownKeys returns the keys of a mapping, and of those in it, that no field of a
// struct has.
func unknownKeys(n *yaml.Node, to any) (unknown []*yaml.Node) {
	return unknownIn(n, reflect.TypeOf(to).Elem())
}

func unknownIn(n *yaml.Node, t reflect.Type) (unknown []*yaml.Node) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() != reflect.Struct || n.Kind != yaml.MappingNode {
		return nil
	}
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		fields[t.Field(i).Tag.Get("yaml")] = t.Field(i).Type
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value == "<<" { // what is merged is checked where it stands
			continue
		}
		if field, ok := fields[key.Value]; ok {
			unknown = append(unknown, unknownIn(value, field)...)
		} else {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

// String returns the address.
func (l listenerConfig) String() string { return l.Address }

// fault is an error of the listener as a field of the configuration.
func (l *listenerConfig) fault(err error) error {
	return badField(&serverError{l.line, err}, "listen")
}

// listener is a listener that is ready to accept.
type listener struct {
	ln   net.Listener
	opts router.Listen
}

// prepare reads what the listener needs, without opening it.
func (l *listenerConfig) prepare(log *slog.Logger) (*listener, error) {
	if err := checkAddress(l.Address); err != nil {
		return nil, l.fault(err)
	}
	out := new(listener)
	out.opts.Name = l.Address
	var err error
	if l.TLS != nil {
		files := certs.Files{Cert: l.TLS.Cert, Key: l.TLS.Key, CA: l.TLS.ClientCA}
		if out.opts.TLS, err = certs.Server(files, log); err != nil {
			return nil, l.fault(err)
		}
	}
	if l.Passwords != "" {
		file, err := passwd.Open(l.Passwords, log)
		if err != nil {
			return nil, l.fault(err)
		}
		out.opts.Passwords = file
	}
	if out.opts.Allow, err = allowed(l.Allow); err != nil {
		return nil, l.fault(err)
	}
	if network, _ := reactor.SplitAddress(l.Address); network == "unix" && len(l.Allow) > 0 {
		return nil, l.fault(errors.New("allow is for addresses, and unix sockets have none: use the permissions of the file's folder"))
	}
	return out, nil
}

// open opens the listener, its socket by listen.
func (l *listenerConfig) open(log *slog.Logger, listen func(network, address string) (net.Listener, error)) (*listener, error) {
	out, err := l.prepare(log)
	if err != nil {
		return nil, err
	}
	if out.ln, err = listen(reactor.SplitAddress(l.Address)); err != nil {
		return nil, fmt.Errorf("cannot listen for clients: %w", err)
	}
	return out, nil
}

// allowed returns a function that tells whether an address is in one of the networks,
// nil if there are none.
func allowed(networks []string) (func(netip.Addr) bool, error) {
	var prefixes []netip.Prefix
	for _, n := range networks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("allow: %q is no network such as 10.0.0.0/8", n)
		}
		prefixes = append(prefixes, p.Masked())
	}
	if prefixes == nil {
		return nil, nil
	}
	return func(a netip.Addr) bool {
		for _, p := range prefixes {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}, nil
}
