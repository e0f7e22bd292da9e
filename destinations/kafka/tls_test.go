package kafka_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// TestTLS has a cluster that wants a client's certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := testserver.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	broker := kafkatest.New(t, kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}))
	publishertest.Deliver(t, kafkatest.Open(t, fmt.Sprintf("%s?ca=%s&cert=%s&key=%s", broker.URL(), c.CA, c.Cert, c.Key)), publishertest.Messages(3))
	for name, options := range map[string]string{
		"a server nobody vouches for":  fmt.Sprintf("?cert=%s&key=%s", c.Cert, c.Key),
		"a client without certificate": "?ca=" + c.CA,
		"no TLS":                       "",
	} {
		publisher := kafkatest.Open(t, broker.URL()+options)
		for what, err := range map[string]error{
			"publish": publishertest.Publish(t, publisher, publishertest.Messages(1))[0], "ping": publisher.Ping(t.Context()),
		} {
			if err == nil || outbox.Classify(err) != outbox.ClassUnavailable {
				t.Errorf("%s: %s answers %v", name, what, err)
			}
		}
	}
	plain := kafkatest.New(t)
	publishertest.Fails(t, publishertest.Publish(t, kafkatest.Open(t, plain.URL()+"?tls=true"), publishertest.Messages(1))[0], outbox.ClassUnavailable)
}
