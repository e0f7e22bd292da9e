package testserver

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

// Certificate is for 127.0.0.1, and serves a server as well as a client.
type Certificate struct {
	// CA, Cert and Key are the names of PEM files: the authority, the certificate that it signed, and
	// the key of the latter.
	CA, Cert, Key string
}

// NewCertificate makes one in a folder of the test.
func NewCertificate(t testing.TB) Certificate {
	t.Helper()
	folder := t.TempDir()
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	sign := func(certificate, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey) []byte {
		certificate.NotBefore, certificate.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		signed, err := x509.CreateCertificate(rand.Reader, certificate, parent, key, by)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, leafKey := newKey(), newKey()
	encoded, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return Certificate{
		CA:   write("ca.pem", "CERTIFICATE", sign(authority, authority, &authorityKey.PublicKey, authorityKey)),
		Cert: write("cert.pem", "CERTIFICATE", sign(leaf, authority, &leafKey.PublicKey, authorityKey)),
		Key:  write("key.pem", "PRIVATE KEY", encoded),
	}
}
