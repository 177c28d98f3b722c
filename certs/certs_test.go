package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/certtest"
)

// handshake connects a client to a server and returns the serial number of the server's
// certificate, and what each says of the connection.
func handshake(t *testing.T, client, server *tls.Config) (serial int64, clientErr, serverErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, c := range []net.Conn{a, b} {
		c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	done := make(chan error, 1)
	go func() {
		s := tls.Server(b, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		b.Close()
		done <- err
	}()
	c := tls.Client(a, client)
	if clientErr = c.Handshake(); clientErr == nil {
		serial = c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		// In TLS 1.3 a server refuses a client's certificate after the handshake.
		_, clientErr = c.Read(make([]byte, 1))
	}
	a.Close()
	return serial, clientErr, <-done
}

func client(t *testing.T, f Files, name string) *tls.Config {
	t.Helper()
	configFor, err := Client(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return configFor(name)
}

func TestMutualTLS(t *testing.T) {
	ca, other := certtest.New(t), certtest.New(t)
	cert, key, _ := ca.Issue("server")
	server, err := Server(Files{Cert: cert, Key: key, CA: ca.File}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ourCert, ourKey, _ := ca.Issue("client")
	theirCert, theirKey, _ := other.Issue("client")
	f := func(want bool, c *tls.Config) {
		t.Helper()
		_, ce, se := handshake(t, c, server)
		if ok := ce == nil && se == nil; ok != want {
			t.Errorf("client %v, server %v", ce, se)
		}
	}
	f(true, client(t, Files{Cert: ourCert, Key: ourKey, CA: ca.File}, "server"))
	f(true, client(t, Files{Cert: ourCert, Key: ourKey, CA: ca.File}, "127.0.0.1"))
	f(false, client(t, Files{CA: ca.File}, "server"))                                        // shows nothing
	f(false, client(t, Files{Cert: theirCert, Key: theirKey, CA: ca.File}, "server"))        // of another authority
	f(false, client(t, Files{Cert: ourCert, Key: ourKey, CA: other.File}, "server"))         // trusts another
	f(false, client(t, Files{Cert: ourCert, Key: ourKey, CA: ca.File}, "elsewhere.example")) // wants another name
	f(false, client(t, Files{Cert: ourCert, Key: ourKey}, "server"))                         // trusts the system's
	old := client(t, Files{Cert: ourCert, Key: ourKey, CA: ca.File}, "server")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	f(false, old)
}

func TestRenewedCertificateIsShown(t *testing.T) {
	ca := certtest.New(t)
	cert, key, first := ca.Issue("server")
	server, err := Server(Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	pem, _ := os.ReadFile(ca.File)
	roots.AppendCertsFromPEM(pem)
	shown := func() int64 {
		t.Helper()
		serial, ce, se := handshake(t, &tls.Config{RootCAs: roots, ServerName: "server"}, server)
		if ce != nil || se != nil {
			t.Fatal(ce, se)
		}
		return serial
	}
	if got := shown(); got != first {
		t.Errorf("shows %d, want %d", got, first)
	}
	_, _, second := ca.Issue("server")
	deadline := time.Now().Add(10 * time.Second)
	for shown() != second {
		if time.Now().After(deadline) {
			t.Fatal("the renewed certificate is not shown")
		}
	}
}

func TestBadFilesAreNamed(t *testing.T) {
	ca := certtest.New(t)
	cert, key, _ := ca.Issue("server")
	f := func(files Files, want string) {
		t.Helper()
		if _, err := Server(files, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", files, err, want)
		}
	}
	f(Files{}, "certificate")
	f(Files{Cert: cert}, "key")
	f(Files{Cert: "/none", Key: key}, "/none")
	f(Files{Cert: cert, Key: cert}, cert)
	f(Files{Cert: cert, Key: key, CA: "/none"}, "/none")
	f(Files{Cert: cert, Key: key, CA: key}, key)
}
