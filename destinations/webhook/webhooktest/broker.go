// Package webhooktest is a receiver of webhooks for tests.
package webhooktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// Limit is the largest body that a Broker takes; more is answered with 413.
const Limit = 200_000

// headerTimeout is longer than any test: a request that is never sent must not hold Stop up.
const headerTimeout = time.Minute

// Broker is a receiver on a port of its own that keeps what it acknowledges, as long as the
// test lasts. It is a publishertest.Broker for events without CloudEvents.
type Broker struct {
	address string

	mu     sync.Mutex
	server *http.Server // nil while it is stopped
	served chan error
	list   []Request
}

// Request is one that was acknowledged.
type Request struct {
	// Header and URL are the request's, and Body is all of its body.
	Header http.Header
	URL    *url.URL
	Body   []byte
}

// New starts a receiver, and stops it with the test.
func New(t testing.TB) *Broker {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{address: testserver.Loopback(port)}
	b.Start(t)
	t.Cleanup(func() { b.Stop(t) })
	return b
}

// URL returns the destination for outbox relay --to.
func (b *Broker) URL() string { return "http://" + b.address + "/hook#allow-private=true" }

// Start listens, at the same address as before.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		return
	}
	var listener net.Listener
	// A process that was just forked may hold the old listener for a moment.
	await.Until(t, "the receiver's port to be free", func() bool {
		var err error
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", b.address)
		return err == nil
	})
	server, served := &http.Server{Handler: http.HandlerFunc(b.take), ReadHeaderTimeout: headerTimeout}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.server, b.served = server, served
}

// Stop closes every connection without a word, and refuses new ones.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	server, served := b.server, b.served
	b.server = nil
	b.mu.Unlock()
	if server == nil {
		return
	}
	if err := server.Close(); err != nil {
		t.Errorf("stop the receiver of webhooks: %v", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the receiver of webhooks failed: %v", err)
	}
}

// take keeps a request and acknowledges it.
func (b *Broker) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, Limit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, fmt.Sprintf("more than %d bytes", Limit), http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, Request{r.Header, r.URL, body})
}

// Requests are those acknowledged so far, in the order of arrival.
func (b *Broker) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list[:len(b.list):len(b.list)]
}

// Received reads the requests as events.
func (b *Broker) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	requests := b.Requests()
	list := make([]publishertest.Received, len(requests))
	for i := range requests {
		received, err := read(&requests[i])
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		list[i] = received
	}
	return list
}

func read(request *Request) (publishertest.Received, error) {
	received := publishertest.Received{
		Payload: request.Body, ContentType: request.Header.Get("Content-Type"), Attributes: make(map[string]string),
	}
	var err error
	if received.ID, err = uuid.Parse(request.Header.Get("webhook-id")); err != nil {
		return received, fmt.Errorf("read the id: %w", err)
	}
	for name := range request.Header {
		value, lower := request.Header.Get(name), strings.ToLower(name)
		field, isField := strings.CutPrefix(lower, "outbox-")
		if !isField {
			if !isProtocols(lower) {
				received.Attributes[lower] = value
			}
			continue
		}
		if value, err = url.PathUnescape(value); err != nil {
			return received, fmt.Errorf("read %s: %w", name, err)
		}
		switch field {
		case "topic":
			received.Topic = value
		case "key":
			received.Key = value
		default:
			received.Attributes[strings.ReplaceAll(field, "-", "_")] = value
		}
	}
	return received, nil
}

// isProtocols reports whether a header is the protocol's rather than the event's.
func isProtocols(lower string) bool {
	switch lower {
	case "user-agent", "content-length", "content-type", "accept-encoding", "authorization":
		return true
	}
	return strings.HasPrefix(lower, "webhook-")
}
