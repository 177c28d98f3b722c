// Package selfsigned makes the one certificate that a TLS measurement needs. It proves nothing: it is
// its own authority, for 127.0.0.1 and an hour, and its key lies beside it.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate is where a certificate and its key are, and how clients verify it.
type Certificate struct {
	CertFile, KeyFile string         // PEM
	Roots             *x509.CertPool // holds the certificate itself
}

// Write makes a certificate with an ECDSA P-256 key and writes both into dir.
func Write(dir string) (Certificate, error) {
	c := Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	cert, key, err := generate()
	if err == nil {
		err = os.WriteFile(c.CertFile, cert, 0o600)
	}
	if err == nil {
		err = os.WriteFile(c.KeyFile, key, 0o600)
	}
	if err != nil {
		return Certificate{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	c.Roots.AppendCertsFromPEM(cert)
	return c, nil
}

// generate returns a certificate and its key, PEM.
func generate() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "load test"},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
