package rabbitmq_test

import (
	"strconv"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open makes a publisher from a URL and closes it with the test.
func open(t testing.TB, url string) *rabbitmq.Publisher {
	t.Helper()
	return publishertest.Open(t, url, rabbitmq.ParseURL, rabbitmq.New)
}

// TestServer has all tests that can share a server.
func TestServer(t *testing.T) {
	t.Parallel()
	certificate := testserver.NewCertificate(t)
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server := rabbittest.New(t, "max_message_size = 500000",
		"listeners.ssl.1 = 127.0.0.1:"+strconv.Itoa(port), "ssl_options.cacertfile = "+certificate.CA, "ssl_options.certfile = "+certificate.Cert,
		"ssl_options.keyfile = "+certificate.Key, "ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = true")
	t.Run("conformance", func(t *testing.T) {
		t.Parallel()
		testConformance(t, server)
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		testTLS(t, server.Vhost(t), "127.0.0.1:"+strconv.Itoa(port), certificate)
	})
	for name, test := range map[string]func(*testing.T, *rabbittest.Broker){
		"unknown queue":                 testUnknownQueue,
		"unknown exchange":              testUnknownExchange,
		"a deleted queue":               testDeletedQueue,
		"a queue not to be declared":    testUndeclarable,
		"a routing key not allowed":     testRoutingKeyRefused,
		"too many connections":          testConnectionLimit,
		"a broken login":                testBrokenLogin,
		"a returned message":            testReturned,
		"a queue declared otherwise":    testDeclaredOtherwise,
		"a full queue":                  testFullQueue,
		"over the server's limit":       testTooLarge,
		"a message that is wrong":       testInvalid,
		"what AMQP cannot carry":        testRejected,
		"refused credentials":           testAuthRefused,
		"no right to write":             testNoPermission,
		"a queue that does not confirm": testSlowBroker,
		"CloudEvents":                   testCloudEvents,
		"a batch of many rounds":        testLargeBatch,
		"closed in mid-batch":           testCloseWaits,
		"nobody there":                  testNobodyThere,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server.Vhost(t))
		})
	}
}

func testConformance(t *testing.T, server *rabbittest.Broker) {
	t.Helper()
	features := publishertest.Features{
		Ordered: true, Attributes: true, Keys: true, ContentType: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = make([]byte, 400_001) },
	}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := server.Vhost(t)
		return publishertest.On(broker, open(t, broker.URL()+"?max-size=400000"))
	})
}
