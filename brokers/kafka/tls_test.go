package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestTLS has a cluster that wants a client's certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	broker := kafkatest.New(t, kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}))
	delivered(t, open(t, fmt.Sprintf("%s?ca=%s&cert=%s&key=%s", broker.URL(), cert, cert, key)), publishertest.Messages(3))
	for name, options := range map[string]string{
		"a server nobody vouches for":  "?tls=true",
		"a client without certificate": "?ca=" + cert,
		"no TLS":                       "",
	} {
		t.Log(name)
		publisher := open(t, broker.URL()+options)
		want(t, publish(t, publisher, publishertest.Messages(1))[0], outbox.Down)
		want(t, publisher.Ping(t.Context()), outbox.Down)
	}
	plain := kafkatest.New(t)
	want(t, publish(t, open(t, plain.URL()+"?tls=true"), publishertest.Messages(1))[0], outbox.Down)
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
