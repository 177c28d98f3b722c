//go:build linux

package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// StartHAProxy starts a haproxy with one thread that passes bytes on to one backend and knows nothing of
// memcached.
func StartHAProxy(ctx context.Context, dir, backend string) (*Server, error) {
	return startWithFile(ctx, dir, "haproxy", "haproxy", func(addr string) string {
		return "global\n  nbthread 1\n  maxconn 4096\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n" +
			"listen memcached\n  bind " + addr + "\n  server one " + backend + "\n"
	}, func(file, _ string) []string { return []string{"-db", "-f", file} })
}

// StartMCProxy starts the memcached at path, which must have been built with its proxy, as a proxy with one
// thread in front of the backends. The rest is its default.
func StartMCProxy(ctx context.Context, dir, path string, backends []string) (*Server, error) {
	return startWithFile(ctx, dir, "mcproxy", path, func(string) string {
		var b strings.Builder
		b.WriteString("function mcp_config_pools()\n  return mcp.pool({\n")
		for i, addr := range backends {
			host, port, _ := net.SplitHostPort(addr)
			fmt.Fprintf(&b, "    mcp.backend('b%d', '%s', %s),\n", i, host, port)
		}
		b.WriteString("  })\nend\n" +
			"function mcp_config_routes(pool)\n" +
			"  local f = mcp.funcgen_new()\n" +
			"  local all = f:new_handle(pool)\n" +
			"  f:ready({ n = 'all', f = function(rctx) return function(r) return rctx:enqueue_and_wait(r, all) end end })\n" +
			"  mcp.attach(mcp.CMD_ANY_STORAGE, f)\nend\n")
		return b.String()
	}, func(file, addr string) []string {
		_, port, _ := net.SplitHostPort(addr)
		args := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1", "-c", "20000", "-o", "proxy_config=" + file}
		if os.Geteuid() == 0 {
			args = append(args, "-u", "root")
		}
		return args
	})
}

// startWithFile starts a program that reads what to do, and listens at an address it is given.
func startWithFile(ctx context.Context, dir, name, path string, text func(addr string) string, args func(file, addr string) []string) (*Server, error) {
	ports, err := freePorts(1)
	if err == nil {
		dir, err = os.MkdirTemp(dir, name+"-")
	}
	file := filepath.Join(dir, "config")
	if err == nil {
		err = os.WriteFile(file, []byte(text(ports[0])), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	s := &Server{Addr: ports[0]}
	if s.Process, err = Start(ctx, Command{Name: name, Path: path, Args: args(file, s.Addr)}); err != nil {
		return nil, err
	}
	return s.serving(ctx, func() bool { return Answers(s.Addr) })
}
