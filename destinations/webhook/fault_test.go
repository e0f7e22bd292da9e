package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/destinations/webhook/webhooktest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// one publishes a single message.
func one(t testing.TB, publisher *webhook.Publisher) error {
	t.Helper()
	return publisher.Publish(t.Context(), publishertest.Messages(1))[0]
}

// wantClass fails unless err is of the class and has the words.
func wantClass(t testing.TB, what string, err error, class outbox.Class, words string) {
	t.Helper()
	if err == nil || outbox.Classify(err) != class || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v is %s, want %s with %q", what, err, outbox.Classify(err), class, words)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/secret")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "because\n\x00 of  <this>") // a status without a body refuses it
	})
	publisher := r.publisher(t, webhook.Config{Terminal: []int{406, 415}})
	for code, class := range map[int]outbox.Class{
		// They may be about the event, or about the URL and the credentials.
		301: outbox.ClassUnclear, 302: outbox.ClassUnclear, 304: outbox.ClassUnclear, 307: outbox.ClassUnclear, 308: outbox.ClassUnclear,
		401: outbox.ClassUnclear, 403: outbox.ClassUnclear, 404: outbox.ClassUnclear, 405: outbox.ClassUnclear, 407: outbox.ClassUnclear, 410: outbox.ClassUnclear,
		408: outbox.ClassUnclear, 421: outbox.ClassUnclear, 426: outbox.ClassUnclear, 501: outbox.ClassUnclear, 505: outbox.ClassUnclear,
		// The receiver has no time, or a gateway has no receiver.
		429: outbox.ClassUnavailable, 502: outbox.ClassUnavailable, 503: outbox.ClassUnavailable, 504: outbox.ClassUnavailable,
		507: outbox.ClassUnavailable, 508: outbox.ClassUnavailable, 509: outbox.ClassUnavailable, 511: outbox.ClassUnavailable, 520: outbox.ClassUnavailable, 530: outbox.ClassUnavailable,
		400: outbox.ClassRetryable, 409: outbox.ClassRetryable, 413: outbox.ClassRetryable, 422: outbox.ClassRetryable,
		425: outbox.ClassRetryable, 431: outbox.ClassRetryable, 500: outbox.ClassRetryable, 599: outbox.ClassRetryable,
		// As configured.
		406: outbox.ClassTerminal, 415: outbox.ClassTerminal,
	} {
		status.Store(int64(code))
		err := one(t, publisher)
		words := fmt.Sprintf("answered %d", code)
		if code != 304 {
			words = "because of <this>"
		}
		wantClass(t, fmt.Sprint(code), err, class, words)
		if err == nil {
			continue
		}
		var away *outbox.UnavailableError
		if errors.As(err, &away) && away.Broken {
			t.Errorf("%d: it is called a connection that broke, although somebody answered", code)
		}
		if class == outbox.ClassTerminal && outbox.ReasonOf(err) != outbox.ReasonRejected {
			t.Errorf("%d: the reason is %s", code, outbox.ReasonOf(err))
		}
		if code/100 == 3 && !strings.Contains(err.Error(), "to https://elsewhere.example; redirects are not followed") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", code, err)
		}
	}
	for _, code := range []int{200, 201, 202, 204, 299} {
		status.Store(int64(code))
		if err := one(t, publisher); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// TestRedirect has a receiver that sends elsewhere whom it is asked by: nothing is sent there.
func TestRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := newReceiver(t, nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) { http.Redirect(w, request, elsewhere.URL, code) })
		wantClass(t, fmt.Sprint(code), one(t, r.publisher(t, webhook.Config{})), outbox.ClassUnclear, "redirects are not followed")
	}
	if n := len(elsewhere.deliveries()); n > 0 {
		t.Errorf("%d requests were sent where a receiver pointed", n)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]time.Duration{
		"120": {2 * time.Minute, 2 * time.Minute},
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat): {59 * time.Minute, time.Hour},
		"9223372036854775807": {outbox.MaxRetryAfter, 1<<63 - 1},
		"-5":                  {}, "soon": {}, "": {},
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): {},
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadRequest} {
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(code)
			})
			err := one(t, r.publisher(t, webhook.Config{}))
			var asked *outbox.RetryAfterError
			if found := errors.As(err, &asked); found != (want[1] > 0) {
				t.Errorf("%d with Retry-After %q: %#v", code, value, err)
			} else if found && (asked.Delay < want[0] || asked.Delay > want[1]) {
				t.Errorf("Retry-After %q is %s, want %s to %s", value, asked.Delay, want[0], want[1])
			}
		}
	}
}

// TestAway has receivers that cannot be connected to: nothing is counted, and after the first
// message none is tried.
func TestAway(t *testing.T) {
	t.Parallel()
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := newReceiver(t, nil)
	for name, address := range map[string]string{
		"refused":               stopped.URL,
		"no such name":          "http://no-such-host.invalid",
		"a certificate":         untrusted.URL,
		"TLS to a plain server": "https" + strings.TrimPrefix(plain.URL, "http"),
	} {
		publisher := open(t, webhook.Config{URL: address, AllowPrivate: true, Concurrency: 1})
		errs := publisher.Publish(t.Context(), publishertest.Messages(3))
		wantClass(t, name, errs[0], outbox.ClassUnavailable, "cannot be reached")
		for _, err := range errs[1:] {
			if !errors.Is(err, outbox.ErrNotAttempted) {
				t.Errorf("%s: a later message: %v", name, err)
			}
		}
		wantClass(t, name+", pinged", publisher.Ping(t.Context()), outbox.ClassUnavailable, "cannot be reached")
	}
}

// TestSilent has a server that accepts connections and never says anything: with TLS it is
// away, since not even the handshake is done; without, it may be the event.
func TestSilent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for scheme, class := range map[string]outbox.Class{"https": outbox.ClassUnavailable, "http": outbox.ClassUnclear} {
		// Half of it is for the connection, which the system makes by itself.
		publisher := open(t, webhook.Config{URL: scheme + "://" + listener.Addr().String(), AllowPrivate: true, Timeout: 3 * time.Second})
		wantClass(t, scheme, one(t, publisher), class, listener.Addr().String())
	}
}

// TestSlow has a receiver that does not answer: it may be because of the message, and the batch's
// deadline is kept.
func TestSlow(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	t.Cleanup(func() { close(release) })
	wantClass(t, "the timeout", one(t, r.publisher(t, webhook.Config{Timeout: 3 * time.Second})), outbox.ClassUnclear, "did not answer in time")
	<-arrived

	errs := publishertest.Abandon(t, r.publisher(t, webhook.Config{Concurrency: 2}), publishertest.Messages(5), func() {
		<-arrived
		<-arrived
	})
	for i, err := range errs {
		if i < 2 {
			wantClass(t, "the deadline", err, outbox.ClassUnclear, "did not answer in time")
		} else if !errors.Is(err, outbox.ErrNotAttempted) {
			t.Errorf("message %d had no turn, but: %v", i, err)
		}
	}
}

// TestStop cuts the connection in the middle of a batch, and restores it.
func TestStop(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 100)
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	proxy := tcpproxy.New(t, r.Listener.Addr().String())
	publisher := r.publisher(t, webhook.Config{URL: "http://" + proxy.Address(), Concurrency: 4})
	answers := make(chan []error)
	go func() { answers <- publisher.Publish(t.Context(), publishertest.Messages(20)) }()
	for range 4 {
		<-arrived
	}
	proxy.Cut()
	down, waiting := 0, 0
	for _, err := range <-answers {
		switch {
		case errors.Is(err, outbox.ErrNotAttempted):
			waiting++
		case outbox.Classify(err) == outbox.ClassUnavailable:
			down++
		default:
			t.Errorf("a broken connection: %v", err)
		}
	}
	if down < 4 || waiting == 0 {
		t.Errorf("%d were met by the break and %d had no turn", down, waiting)
	}
	if publisher.Ping(t.Context()) == nil {
		t.Error("a receiver that is away answers the ping")
	}
	close(release)
	proxy.Restore(t)
	if err := publisher.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for _, err := range publisher.Publish(t.Context(), publishertest.Messages(20)) {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestIdleConnection has a receiver close a connection that it thought idle just when the next
// request comes: that goes out again on a new one, and nothing fails.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	used := make(map[string]bool)
	r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if used[request.RemoteAddr] {
			hangUp(t, w)
		}
		used[request.RemoteAddr] = true
	})
	publisher := r.publisher(t, webhook.Config{})
	for range 5 {
		if err := one(t, publisher); err != nil {
			t.Fatal(err)
		}
	}
	if len(used) != 5 {
		t.Errorf("there were %d connections, want that each was closed", len(used))
	}
}

// TestRestart stops the receiver in the middle of a stream of batches and brings it back:
// nothing is lost, and nothing counted.
func TestRestart(t *testing.T) {
	t.Parallel()
	broker := webhooktest.New(t)
	publisher := open(t, parse(t, broker.URL()))
	messages := publishertest.Messages(2000)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for len(broker.Requests()) < 300 {
			runtime.Gosched()
		}
		broker.Stop(t)
	}()
	var left []outbox.Message
	for i, err := range publisher.Publish(t.Context(), messages) {
		if err == nil {
			continue
		}
		if left = append(left, messages[i]); !errors.Is(err, outbox.ErrNotAttempted) && outbox.Classify(err) != outbox.ClassUnavailable {
			t.Errorf("message %d: %v", i, err)
		}
	}
	<-stopped
	if len(left) == 0 {
		t.Fatal("nothing met the stop")
	}
	if publisher.Ping(t.Context()) == nil {
		t.Error("a receiver that is stopped answers the ping")
	}
	broker.Start(t)
	for i, err := range publisher.Publish(t.Context(), left) {
		if err != nil {
			t.Errorf("message %d after the stop: %v", i, err)
		}
	}
	arrived := make(map[uuid.UUID]bool)
	for _, r := range broker.Received(t) {
		arrived[r.ID] = true
	}
	if len(arrived) != len(messages) {
		t.Errorf("%d of %d arrived", len(arrived), len(messages))
	}
}

// TestHangUp has a receiver that closes the connection instead of answering.
func TestHangUp(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { hangUp(t, w) })
	wantClass(t, "hung up", one(t, r.publisher(t, webhook.Config{})), outbox.ClassUnavailable, "broke")
}

func hangUp(t testing.TB, w http.ResponseWriter) {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_ = conn.Close() // that is all it is for
}

// TestKeptAlive counts connections.
func TestKeptAlive(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	publisher := r.publisher(t, webhook.Config{Concurrency: 3})
	for range 5 {
		for _, err := range publisher.Publish(t.Context(), publishertest.Messages(20)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	// A connection may still be on its way back when the next request looks for one.
	if n := opened.Load(); n >= 100 {
		t.Errorf("%d connections were opened for 100 requests", n)
	}
}

// TestLongAnswer has a receiver that does not stop talking, and is not listened to for long.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	const much = 64 << 20
	for code, acknowledged := range map[int]bool{200: true, 500: false} {
		part := strings.Repeat("é", 1<<15)
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			for range much / len(part) {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
			t.Errorf("%d: the whole answer was read", code)
		})
		err := one(t, r.publisher(t, webhook.Config{}))
		if acknowledged != (err == nil) || err != nil && len(err.Error()) > 600 {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// TestCancelled has the batch taken away.
func TestCancelled(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		close(arrived)
		<-request.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	err := r.publisher(t, webhook.Config{}).Publish(ctx, publishertest.Messages(1))[0]
	wantClass(t, "cancelled", err, outbox.ClassUnclear, "canceled")
}
