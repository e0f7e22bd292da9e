package webhook_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// moody is a receiver whose answers can be changed, behind a proxy.
type moody struct {
	proxy *tcpproxy.Proxy
	url   string
	mood  atomic.Pointer[func(http.ResponseWriter) (taken bool)]

	mu       sync.Mutex
	received []uuid.UUID
}

// ServeHTTP answers as the mood is, and keeps what it acknowledges.
func (m *moody) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	id, err := uuid.Parse(request.Header.Get("webhook-id"))
	if err != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	if mood := m.mood.Load(); mood != nil && !(*mood)(w) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received = append(m.received, id)
}

func newMoody(t testing.TB, secure bool) *moody {
	t.Helper()
	m := &moody{}
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.proxy = tcpproxy.New(t, server.Listener.Addr().String())
	m.url = "http://" + m.proxy.Address() + "/hook#allow-private=true"
	if secure {
		files := testserver.NewCertificate(t)
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		m.url = "https" + m.url[len("http"):] + "&ca-file=" + files.CA
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return m
}

// destination is the receiver and what can happen to it.
func (m *moody) destination(faults ...outagetest.Fault) outagetest.Destination {
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, parse(t, m.url)) },
		Received: func(testing.TB) []uuid.UUID {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.received
		},
		Faults: faults,
	}
}

// answers is a fault in which every request is answered alike.
func (m *moody) answers(name string, mood func(http.ResponseWriter) bool) outagetest.Fault {
	return outagetest.Fault{
		Name:  name,
		Begin: func(testing.TB) { m.mood.Store(&mood) },
		End:   func(testing.TB) { m.mood.Store(nil) },
	}
}

func status(code int) func(http.ResponseWriter) bool {
	return func(w http.ResponseWriter) bool {
		w.WriteHeader(code)
		return false
	}
}

// hung is a receiver that takes requests and answers none until it goes on.
func (m *moody) hung() outagetest.Fault {
	goOn := make(chan struct{})
	fault := m.answers("hung", func(http.ResponseWriter) bool {
		<-goOn
		return true
	})
	fault.End = func(testing.TB) {
		m.mood.Store(nil)
		close(goOn)
	}
	return fault
}

func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, func(t testing.TB) outagetest.Destination {
		t.Helper()
		m := newMoody(t, false)
		slow := m.answers("slow", func(http.ResponseWriter) bool {
			time.Sleep(time.Second)
			return true
		})
		slow.Slow = true
		return m.destination(
			outagetest.Fault{Name: "refused", Begin: func(testing.TB) { m.proxy.Cut() }, End: m.proxy.Restore},
			outagetest.Fault{Name: "dropped", Begin: func(testing.TB) { m.proxy.Swallow() }, End: func(testing.TB) { m.proxy.Resume() }},
			m.hung(), slow,
			m.answers("credentials revoked", status(http.StatusUnauthorized)),
			m.answers("forbidden", status(http.StatusForbidden)),
			m.answers("topic deleted", status(http.StatusNotFound)),
			m.answers("no time", func(w http.ResponseWriter) bool {
				w.Header().Set("Retry-After", "1")
				return status(http.StatusServiceUnavailable)(w)
			}),
		)
	}, "refused", "dropped", "hung", "slow", "credentials revoked", "forbidden", "topic deleted", "no time")
	outagetest.Run(t, func(t testing.TB) outagetest.Destination {
		t.Helper()
		m := newMoody(t, true)
		return m.destination(outagetest.Fault{
			Name:  "TLS broken",
			Begin: func(testing.TB) { m.proxy.Garble(true) },
			End:   func(testing.TB) { m.proxy.Garble(false) },
		})
	}, "TLS broken")
}
