package selfsigned

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
)

func TestClientsWithTheRootsAcceptTheCertificateAndOthersDoNot(t *testing.T) {
	c, err := Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	f := func(roots *x509.CertPool, name string) error {
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := f(c.Roots, "127.0.0.1"); err != nil {
		t.Error(err)
	}
	if f(c.Roots, "127.0.0.2") == nil {
		t.Error("the certificate is good for another address")
	}
	if f(x509.NewCertPool(), "127.0.0.1") == nil {
		t.Error("the certificate is good without its roots")
	}
}

func TestWriteSaysWhatFailed(t *testing.T) {
	if _, err := Write("/nonexistent/folder"); err == nil || !strings.Contains(err.Error(), "cannot make a certificate") {
		t.Errorf("error is %v", err)
	}
}
