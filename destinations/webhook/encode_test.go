package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func event() outbox.Message {
	return outbox.Message{
		Event: outbox.Event{
			ID: uuid.MustParse("01890000-0000-7000-8000-000000000000"), Topic: "orders", Type: "order_created",
			AggregateType: "order", AggregateID: "caf\u00e9 \"1\" 100%", Key: "order/1",
			Payload: []byte(`{"a":1}`), Headers: map[string]string{"traceparent": "00-1-2-01", "baggage": "a=b%20c, d", "X-Name": "Zo\u00eb 100%"},
		},
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// wantHeaders fails unless these arrived; an empty value wants none.
func wantHeaders(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Get(name), value)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		format wire.Format
		want   map[string]string
	}{
		"plain": {wire.Format{}, map[string]string{
			"Outbox-Event-Id": "01890000-0000-7000-8000-000000000000", "Outbox-Event-Type": "order_created",
			"Outbox-Aggregate-Id": "caf%C3%A9%20%221%22%20100%25", "Outbox-Created-At": "2026-01-02T03:04:05Z",
			"Outbox-Topic": "orders", "Outbox-Key": "order/1", "Outbox-Tenant-Id": "",
			"Traceparent": "00-1-2-01", "Baggage": "a=b%20c, d", "X-Name": "Zo%C3%AB 100%", "Content-Type": "application/json",
		}},
		"cloudevents": {wire.Format{CloudEvents: true, Source: "/shop"}, map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": "01890000-0000-7000-8000-000000000000", "Ce-Type": "order_created", "Ce-Source": "/shop",
			"Ce-Time": "2026-01-02T03:04:05Z", "Ce-Subject": "order/caf%C3%A9%20%221%22%20100%25", "Ce-Partitionkey": "order/1",
			"Ce-Traceparent": "00-1-2-01", "Traceparent": "00-1-2-01", "Outbox-Event-Id": "", "Content-Type": "application/json",
		}},
	} {
		r := newReceiver(t, nil)
		publisher := r.publisher(t, webhook.Config{URL: r.URL + "/hook?own=1&format=x", Format: test.format})
		if err := publisher.Publish(t.Context(), []outbox.Message{event()})[0]; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.deliveries()[0]
		wantHeaders(t, got.header, test.want)
		if got.url.String() != "/hook?own=1&format=x" || string(got.body) != `{"a":1}` {
			t.Errorf("%s: %s was sent %s", name, got.url, got.body)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		field, own, payload, want string
	}{
		"the event's":            {"text/plain; charset=utf-8", "", "{}", "text/plain; charset=utf-8"},
		"the event's stands":     {"text/plain", "text/html", "{}", "text/plain"},
		"its own header":         {"", "text/html", "{}", "text/html"},
		"JSON without one":       {"", "", `[1]`, "application/json"},
		"something without one":  {"", "", "\x00", ""},
		"nothing, not even JSON": {"", "", "", ""},
	} {
		for _, ce := range []bool{false, true} {
			r := newReceiver(t, nil)
			message := event()
			message.ContentType, message.Payload = test.field, []byte(test.payload)
			if test.own != "" {
				message.Headers = map[string]string{"content-type": test.own}
			}
			publisher := r.publisher(t, webhook.Config{Format: wire.Format{CloudEvents: ce}})
			if err := publisher.Publish(t.Context(), []outbox.Message{message})[0]; err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := r.deliveries()[0].header.Get("Content-Type"); got != test.want {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
		}
	}
}

// TestRefusedHeaders has events whose headers HTTP cannot carry, or that would pose as
// something else. Each is refused by name, before anything is sent.
func TestRefusedHeaders(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	for name, value := range map[string]string{
		"": "x", "two words": "x", "caf\u00e9": "x", "a:b": "x", "a\nb": "x", ":path": "/",
		"X-Line": "a\r\nHost: evil", "X-Nul": "\x00", "X-Space": " a", "X-Tab": "a\t", "X-Delete": "\x7f",
		"Host": "evil", "content-length": "1", "Transfer-Encoding": "chunked", "CONNECTION": "close", "Keep-Alive": "x", "TE": "x",
		"Trailer": "x", "Upgrade": "x", "Expect": "100-continue", "Authorization": "x", "Proxy-Authorization": "x", "Cookie": "x",
		"webhook-id": "x", "Webhook-Signature": "x", "outbox-event-id": "x", "X-Forwarded-For": "x", "Forwarded": "x", "User-Agent": "x",
	} {
		message := event()
		message.Headers = map[string]string{name: value}
		err := r.publisher(t, webhook.Config{}).Publish(t.Context(), []outbox.Message{message})[0]
		wantClass(t, name, err, outbox.ClassTerminal, "header "+quote(name))
	}
	twice := event()
	twice.Headers = map[string]string{"X-A": "1", "x-a": "2"}
	wantClass(t, "twice", r.publisher(t, webhook.Config{}).Publish(t.Context(), []outbox.Message{twice})[0], outbox.ClassTerminal, `header "x-a" is there twice`)
	forged := event()
	forged.Headers = map[string]string{"CE-Id": "forged"}
	publisher := r.publisher(t, webhook.Config{Format: wire.Format{CloudEvents: true}})
	wantClass(t, "forged", publisher.Publish(t.Context(), []outbox.Message{forged})[0], outbox.ClassTerminal, `header "CE-Id" is there twice`)
	typed := event()
	typed.ContentType = "text/plain\n"
	wantClass(t, "content type", publisher.Publish(t.Context(), []outbox.Message{typed})[0], outbox.ClassTerminal, "content type")
	if n := len(r.deliveries()); n != 0 {
		t.Errorf("%d of them were sent", n)
	}
}

func quote(name string) string {
	return `"` + strings.NewReplacer("\n", `\n`).Replace(name) + `"`
}

// TestSecretsStay has a receiver that repeats everything it was sent, and others that cannot be
// reached: no error may have the password, the token, the signing secret, the path or the query.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	signing := secret("s")
	r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		user, password, _ := request.BasicAuth()
		_ = request.Header.Write(w)
		_, _ = w.Write([]byte(user + ":" + password + " " + request.Header.Get("Authorization") + " " + signing))
	})
	host := strings.TrimPrefix(r.URL, "http://")
	for name, config := range map[string]webhook.Config{
		"basic":       {URL: "http://ada:pa55w0rd@" + host + "/s3cretpath?token=s3crettoken"},
		"bearer":      {URL: "http://" + host + "/s3cretpath?token=s3crettoken", Authorization: "Bearer t0ken"},
		"unreachable": {URL: "http://ada:pa55w0rd@127.0.0.1:1/s3cretpath?token=s3crettoken"},
		"no TLS":      {URL: "https://ada:pa55w0rd@" + host + "/s3cretpath?token=s3crettoken"},
	} {
		config.Secrets, config.AllowPrivate = []string{signing}, true
		publisher := open(t, config)
		texts := []string{config.String(), config.GoString()}
		for _, err := range append(publisher.Publish(t.Context(), publishertest.Messages(1)), publisher.Ping(t.Context())) {
			if err != nil {
				texts = append(texts, err.Error())
			}
		}
		if len(texts) < 3 {
			t.Errorf("%s: nothing failed", name)
		}
		for _, text := range texts {
			for _, word := range []string{"pa55w0rd", "YWRhOnBhNTV3MHJk", "t0ken", "s3cret", signing, strings.TrimPrefix(signing, "whsec_")} {
				if strings.Contains(text, word) {
					t.Errorf("%s: %q shows %s", name, text, word)
				}
			}
		}
	}
}

// TestAuthorization looks at what the receiver is told.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	host := strings.TrimPrefix(r.URL, "http://")
	for _, config := range []webhook.Config{{URL: "http://ada:pa55w0rd@" + host}, {Authorization: "Bearer t0ken"}} {
		if err := one(t, r.publisher(t, config)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"Basic YWRhOnBhNTV3MHJk", "Bearer t0ken"} {
		if got := r.deliveries()[i].header.Get("Authorization"); got != want {
			t.Errorf("the authorization is %q, want %q", got, want)
		}
	}
}
