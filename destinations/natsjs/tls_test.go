package natsjs_test

import (
	"fmt"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// TestTLS has a server that wants a client's certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := testserver.NewCertificate(t)
	broker := natstest.Bare(t, natstest.Settings{
		Config: fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", c.Cert, c.Key, c.CA),
	})
	good := fmt.Sprintf("tls://%s?create=true&ca=%s&cert=%s&key=%s", broker.Address(), c.CA, c.Cert, c.Key)
	publishertest.Deliver(t, open(t, good), publishertest.Messages(3))

	for name, url := range map[string]string{
		"a server nobody vouches for":  fmt.Sprintf("tls://%s?cert=%s&key=%s", broker.Address(), c.Cert, c.Key),
		"a client without certificate": fmt.Sprintf("tls://%s?ca=%s", broker.Address(), c.CA),
	} {
		t.Log(name)
		publishertest.Fails(t, publishertest.Publish(t, open(t, url), publishertest.Messages(1))[0], outbox.ClassUnavailable, "tls")
	}
}

// TestTLSWanted has a server without TLS.
func TestTLSWanted(t *testing.T) {
	t.Parallel()
	broker := natstest.New(t)
	publishertest.Fails(t, publishertest.Publish(t, open(t, "tls://"+broker.Address()), publishertest.Messages(1))[0], outbox.ClassUnavailable, "secure connection not available")
}
