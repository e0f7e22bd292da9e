package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/destinations/webhook/webhooktest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestMain looks for what a publisher leaves running. The servers of the tests keep a connection
// for half a second after an answer that ends it.
func TestMain(m *testing.M) {
	pgtest.Main(m, goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

// delivery is one request that a receiver was sent.
type delivery struct {
	header http.Header
	url    *url.URL
	method string
	body   []byte
}

// receiver is a real server that keeps what it acknowledges.
type receiver struct {
	*httptest.Server
	answer http.HandlerFunc // nil acknowledges

	mu   sync.Mutex
	list []delivery
}

func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP takes a request.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	if r.answer != nil {
		r.answer(w, request)
		return
	}
	r.keep(request)
}

// keep keeps a request that is acknowledged.
func (r *receiver) keep(request *http.Request) {
	body, _ := io.ReadAll(request.Body) // it is in memory
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, delivery{request.Header, request.URL, request.Method, body})
}

func (r *receiver) deliveries() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

// publisher posts to the receiver, closed with the test.
func (r *receiver) publisher(t testing.TB, config webhook.Config) *webhook.Publisher {
	t.Helper()
	config.AllowPrivate = true
	if config.URL == "" {
		config.URL = r.URL
	}
	return open(t, config)
}

func open(t testing.TB, config webhook.Config) *webhook.Publisher {
	t.Helper()
	publisher, err := webhook.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // twice is safe
			if err := publisher.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return publisher
}

// harness runs the conformance suite.
type harness struct {
	*webhooktest.Broker
	to *webhook.Publisher
}

func (h *harness) Publisher() outbox.Publisher { return h.to }

func TestSuite(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Attributes: true, Keys: true, ContentType: true, Binary: true, Poison: func(m *outbox.Message) {
		m.Payload = []byte(strings.Repeat("x", webhooktest.Limit+1))
	}}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := webhooktest.New(t)
		return &harness{broker, open(t, parse(t, broker.URL()))}
	})
}

func parse(t testing.TB, raw string) webhook.Config {
	t.Helper()
	config, err := webhook.ParseURL(raw)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
