package natsjs_test

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
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestTLS has a server that wants a client's certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	broker := natstest.Bare(t, natstest.Settings{
		Config: fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, cert),
	})
	good := fmt.Sprintf("tls://%s?create=true&ca=%s&cert=%s&key=%s", broker.Address(), cert, cert, key)
	delivered(t, open(t, good), publishertest.Messages(3))

	for name, url := range map[string]string{
		"a server nobody vouches for":  "tls://" + broker.Address(),
		"a client without certificate": fmt.Sprintf("tls://%s?ca=%s", broker.Address(), cert),
	} {
		t.Log(name)
		want(t, publish(t, open(t, url), publishertest.Messages(1))[0], outbox.Down, "tls")
	}
}

// TestTLSWanted has a server without TLS.
func TestTLSWanted(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	want(t, publish(t, open(t, "tls://"+broker.Address()), publishertest.Messages(1))[0], outbox.Down, "secure connection not available")
}

// certificate is one that vouches for itself, for server and client.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outbox test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", public), write("key.pem", "PRIVATE KEY", secret)
}
