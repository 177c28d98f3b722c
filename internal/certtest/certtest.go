// Package certtest makes certificate authorities and certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority that lives as long as its test.
type Authority struct {
	// File has its certificate, PEM.
	File string

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// New returns an authority of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), next: 2}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	a.check(err)
	a.cert, err = x509.ParseCertificate(der)
	a.check(err)
	a.File = filepath.Join(a.dir, "ca.pem")
	a.write(a.File, "CERTIFICATE", der)
	return a
}

// Issue writes a certificate for 127.0.0.1, localhost and the given name, and its key,
// to files of that name; a second call replaces them. It returns the files and the
// certificate's serial number.
func (a *Authority) Issue(name string) (certFile, keyFile string, serial int64) {
	a.t.Helper()
	key := a.newKey()
	serial = a.next
	a.next++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{name, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	a.check(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	a.check(err)
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
	a.write(keyFile, "EC PRIVATE KEY", keyDER)
	a.write(certFile, "CERTIFICATE", der)
	return certFile, keyFile, serial
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	return key
}

func (a *Authority) write(file, kind string, der []byte) {
	a.t.Helper()
	a.check(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *Authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}
