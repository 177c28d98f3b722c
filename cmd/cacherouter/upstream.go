package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"cacherouter/certs"
	"cacherouter/passwd"
	"cacherouter/reactor"
)

// clientTLS names the files of a pool's TLS; they are read again when they change.
type clientTLS struct {
	CA         string `yaml:"ca" doc:"Authorities that must have signed the servers' certificates; none means those of the system."`
	Cert       string `yaml:"cert" doc:"Certificate shown to servers, PEM."`
	Key        string `yaml:"key" doc:"Its key, PEM."`
	ServerName string `yaml:"server_name" doc:"The name that servers' certificates must bear; none means the host of each server's address."`
}

// upstream is how servers are spoken to.
type upstream struct {
	dial           reactor.Dialer
	user, password string
}

// upstream reads what the pool needs to speak to its servers.
func (p *poolConfig) upstream(log *slog.Logger) (u upstream, err error) {
	if p.Passwords != "" {
		if u.user, u.password, err = passwd.First(p.Passwords); err != nil {
			return u, badField(err, "pool", "passwords")
		}
	}
	if p.TLS == nil {
		return u, nil
	}
	configFor, err := certs.Client(certs.Files{CA: p.TLS.CA, Cert: p.TLS.Cert, Key: p.TLS.Key}, log)
	if err != nil {
		return u, badField(err, "pool", "tls")
	}
	u.dial = dialTLS(configFor, p.TLS.ServerName)
	return u, nil
}

// dialTLS returns a dialer that ends with a handshake.
func dialTLS(configFor func(string) *tls.Config, serverName string) reactor.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		name := serverName
		if name == "" && network != "unix" {
			name, _, _ = net.SplitHostPort(addr)
		}
		tc := tls.Client(nc, configFor(name))
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Addr: nc.RemoteAddr(), Err: fmt.Errorf("TLS handshake: %w", err)}
		}
		return tc, nil
	}
}
