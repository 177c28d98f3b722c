//go:build linux

package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds one connect, the greeting, and later each batch of requests.
const patience = 10 * time.Second

// dial connects to the plan's target and wraps the connection.
func dial(ctx context.Context, p Plan) (net.Conn, error) {
	conn, err := dialPlain(ctx, p.Target)
	if err != nil || p.Wrap == nil {
		return conn, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	wrapped, err := p.Wrap(conn)
	if err != nil {
		conn.Close()
		return nil, unusable(p.Target, err)
	}
	return wrapped, nil
}

func dialPlain(ctx context.Context, target string) (net.Conn, error) {
	conn, err := dialSocket(ctx, target)
	if err != nil {
		return nil, unusable(target, err)
	}
	return conn, nil
}

func dialSocket(ctx context.Context, target string) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return d.DialContext(ctx, "tcp", target)
}

// greet makes sure that the target answers a version request of the text protocol as memcached
// does.
func greet(ctx context.Context, p Plan) error {
	conn, err := dial(ctx, p)
	if err != nil {
		return err
	}
	target := p.Target
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write([]byte("version\r\n")); err != nil {
		return unusable(target, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return unusable(target, fmt.Errorf("no answer to a version request: %w", err))
	}
	if !strings.HasPrefix(line, "VERSION ") {
		return unusable(target, fmt.Errorf("it is no memcached: version request was answered %.80q", line))
	}
	return nil
}

// connect dials target and takes the socket out of the Go runtime's poller, which would otherwise
// be woken for every reply too.
func connect(ctx context.Context, target string) (fd int, err error) {
	conn, err := dialPlain(ctx, target)
	if err != nil {
		return -1, err
	}
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, unusable(target, err)
	}
	var dupErr error
	err = raw.Control(func(own uintptr) { fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = dupErr
	}
	if err != nil {
		return -1, unusable(target, err)
	}
	return fd, nil
}

// connectAgain begins to connect to where fd is connected to.
func connectAgain(fd int) (again int, err error) {
	peer, err := unix.Getpeername(fd)
	if err != nil {
		return -1, fmt.Errorf("cannot connect again: %w", err)
	}
	family := unix.AF_INET
	switch peer.(type) {
	case *unix.SockaddrInet6:
		family = unix.AF_INET6
	case *unix.SockaddrUnix:
		family = unix.AF_UNIX
	}
	again, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot connect again: %w", err)
	}
	if family != unix.AF_UNIX {
		_ = unix.SetsockoptInt(again, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // without it, it is only slower
	}
	if err := unix.Connect(again, peer); err != nil && err != unix.EINPROGRESS {
		unix.Close(again)
		return -1, fmt.Errorf("cannot connect again: %w", err)
	}
	return again, nil
}
