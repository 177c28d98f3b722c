package handoff

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
)

// Sockets are the listening sockets of a process: those that it was given, and those that it
// has opened. The zero value has none. Any goroutine may use it.
type Sockets struct {
	mu    sync.Mutex
	given []socket
	open  []socket
}

// socket is a listening socket, and what it is asked for by.
type socket struct {
	network, address string
	ln               net.Listener
	file             *os.File // nil for those that were not given
	theirs           bool     // whoever gave it keeps it: its file is not ours to remove
}

// Give adds a socket that another process has opened. An empty address stands for the one
// that it listens on, and says that whoever gave it keeps it, as systemd does. The file is
// the sockets' from then on.
func (s *Sockets) Give(network, address string, f *os.File) error {
	if f == nil {
		return fmt.Errorf("there is no descriptor for %s", address)
	}
	ln, err := net.FileListener(f)
	if err != nil {
		f.Close()
		return fmt.Errorf("descriptor for %s listens to nothing: %w", address, err)
	}
	theirs := address == ""
	if theirs {
		network, address = ln.Addr().Network(), ln.Addr().String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, socket{network, address, ln, f, theirs})
	return nil
}

// Listen returns a socket that was given, or else opens one.
func (s *Sockets) Listen(network, address string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.given, func(g socket) bool { return g.matches(network, address) }); i >= 0 {
		g := s.given[i]
		s.given = slices.Delete(s.given, i, i+1)
		if u, ok := g.ln.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(!g.theirs)
		}
		s.open = append(s.open, socket{network, address, g.ln, nil, g.theirs})
		return g.ln, g.file.Close()
	}
	ln, err := net.Listen(network, address)
	if err == nil {
		s.open = append(s.open, socket{network, address, ln, nil, false})
	}
	return ln, err
}

// matches reports whether a socket is the one that an address stands for: a host's name, or
// none at all, may be another way to say where it listens.
func (s socket) matches(network, address string) bool {
	if s.network != network {
		return false
	}
	if s.address == address {
		return true
	}
	here, ok := s.ln.Addr().(*net.TCPAddr)
	want, err := net.ResolveTCPAddr("tcp", address)
	if network != "tcp" || !ok || err != nil || want.Port == 0 || want.Port != here.Port {
		return false
	}
	return want.IP.Equal(here.IP) || want.IP == nil && here.IP.IsUnspecified()
}

// Unused closes the sockets that were given and that nobody has asked for, and returns their
// addresses.
func (s *Sockets) Unused() (addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.given {
		addresses = append(addresses, g.address)
		g.ln.Close()
		g.file.Close()
	}
	s.given = nil
	return addresses
}

// Each calls f with the sockets that are in use: the address they were asked for by, and a
// descriptor of each that is valid during the call.
func (s *Sockets) Each(f func(network, address string, file *os.File) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		file, err := fileOfListener(o.ln)
		if errors.Is(err, net.ErrClosed) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot hand over %s: %w", o.address, err)
		}
		err = errors.Join(f(o.network, o.address, file), file.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// Keep leaves the files of unix sockets where they are when the sockets close, as another
// process listens there.
func (s *Sockets) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		if u, ok := o.ln.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false)
		}
	}
}

func fileOfListener(ln net.Listener) (*os.File, error) {
	f, ok := ln.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor", ln)
	}
	return f.File()
}
