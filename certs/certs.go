// Package certs makes TLS configurations from files, which are read again when they
// change, so that certificates are renewed without a restart.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"cacherouter/fresh"
)

// Files names what a side of a connection shows and trusts. PEM everywhere.
type Files struct {
	// Cert and Key are the certificate chain shown to the other side, and its key. A
	// server must have them.
	Cert, Key string
	// CA has the authorities that must have signed the other side's certificate. For a
	// server, empty means that clients need none; for a client, it means those of the
	// system.
	CA string
}

// Server returns the configuration of a server: TLS 1.2 or later.
func Server(f Files, log *slog.Logger) (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("cannot serve TLS without a certificate and its key")
	}
	v, err := fresh.New(log, func() (*tls.Config, error) {
		c, err := base(f)
		if err == nil && c.RootCAs != nil {
			c.ClientCAs, c.RootCAs = c.RootCAs, nil
			c.ClientAuth = tls.RequireAndVerifyClientCert
		}
		return c, err
	}, f.names()...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return v.Get(), nil },
	}, nil
}

// Client returns a function that gives the configuration of a client that expects the
// server to be serverName: TLS 1.2 or later, the server's certificate always verified.
func Client(f Files, log *slog.Logger) (func(serverName string) *tls.Config, error) {
	v, err := fresh.New(log, func() (*tls.Config, error) { return base(f) }, f.names()...)
	if err != nil {
		return nil, err
	}
	return func(serverName string) *tls.Config {
		c := v.Get().Clone()
		c.ServerName = serverName
		return c
	}, nil
}

// base reads the files.
func base(f Files) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot load certificate %s: %w", f.Cert, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in it", f.CA)
		}
	}
	return c, nil
}

func (f Files) names() []string {
	var names []string
	for _, n := range []string{f.Cert, f.Key, f.CA} {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}
