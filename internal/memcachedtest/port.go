package memcachedtest

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Reserve returns a loopback address, host:port, that refuses connections until something listens on it, and keeps
// the port from being handed to any other process until the test ends.
//
// A socket bound with SO_REUSEADDR but never listening holds the port: the kernel will neither pick it as an
// ephemeral port nor refuse it to a later listener that sets SO_REUSEADDR too, as memcached and Go both do.
func Reserve(tb testing.TB) string {
	tb.Helper()
	fd, addr, err := holdPort()
	if err != nil {
		tb.Fatalf("cannot reserve a port: %v", err)
	}
	tb.Cleanup(func() { syscall.Close(fd) })
	return addr.String()
}

func holdPort() (fd int, addr netip.AddrPort, err error) {
	syscall.ForkLock.RLock()
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, addr, fmt.Errorf("cannot open a socket: %w", err)
	}
	if addr, err = bindLoopback(fd); err != nil {
		syscall.Close(fd)
	}
	return fd, addr, err
}

func bindLoopback(fd int) (netip.AddrPort, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot share the port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot read the bound port: %w", err)
	}
	in4 := name.(*syscall.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), uint16(in4.Port)), nil
}

const unixPrefix = "unix:"

// Dial connects to host:port, or to the unix socket /path for "unix:/path".
func Dial(addr string, timeout time.Duration) (net.Conn, error) {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return net.DialTimeout("unix", path, timeout)
	}
	return net.DialTimeout("tcp", addr, timeout)
}
