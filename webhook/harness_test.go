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

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/publishertest"
	"github.com/packfinderz/outbox/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the largest body that a receiver takes.
const limit = 200_000

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
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, limit))
	if err != nil {
		http.Error(w, "too much", http.StatusRequestEntityTooLarge)
		return
	}
	if r.answer != nil {
		request.Body = io.NopCloser(bytes.NewReader(body))
		r.answer(w, request)
		return
	}
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
	*receiver
	to *webhook.Publisher
}

func (h *harness) Publisher() outbox.Publisher { return h.to }

func (h *harness) Received(t testing.TB) (list []publishertest.Received) {
	t.Helper()
	for _, d := range h.deliveries() {
		id, err := uuid.Parse(d.header.Get("webhook-id"))
		if err != nil {
			t.Fatal(err)
		}
		received := publishertest.Received{ID: id, Payload: d.body, Attributes: make(map[string]string)}
		for name := range d.header {
			value := d.header.Get(name)
			own, field := strings.CutPrefix(strings.ToLower(name), "outbox-")
			if field {
				if value, err = url.PathUnescape(value); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case own == "topic" && field:
				received.Topic = value
			case own == "key" && field:
				received.Key = value
			case field:
				received.Attributes[strings.ReplaceAll(own, "-", "_")] = value
			case name == "Content-Type" && d.header.Get("outbox-event-type") == "bare":
				// The suite's event without a content type; what is sent then has a test of its own.
			case name == "Content-Type":
				received.Attributes["content_type"] = value
			case name != "User-Agent" && name != "Content-Length" && name != "Accept-Encoding" && !strings.HasPrefix(name, "Webhook-"):
				received.Attributes[own] = value
			}
		}
		list = append(list, received)
	}
	return list
}

func TestSuite(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Attributes: true, Binary: true, Poison: func(m *outbox.Message) {
		m.Payload = []byte(strings.Repeat("x", limit+1))
	}}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		r := newReceiver(t, nil)
		return &harness{r, r.publisher(t, webhook.Config{})}
	})
}
