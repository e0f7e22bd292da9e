package webhook_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/publishertest"
	"github.com/packfinderz/outbox/webhook"
)

func secret(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// TestVector holds Verify against the example that other implementations use.
func TestVector(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}
	secrets := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	body := []byte(`{"test": 2432232314}`)
	if err := webhook.Verify(secrets, header, body, time.Unix(1614265330, 0)); err != nil {
		t.Error(err)
	}
	for name, test := range map[string]struct {
		secrets []string
		body    string
		at      int64
		words   string
	}{
		"another body":   {secrets, `{"test": 2432232315}`, 1614265330, "no signature is right"},
		"another secret": {[]string{secret("a")}, string(body), 1614265330, "no signature is right"},
		"no secret":      {nil, string(body), 1614265330, "no signature is right"},
		"an old request": {secrets, string(body), 1614265330 + 301, "5m1s from now"},
		"from tomorrow":  {secrets, string(body), 1614265330 - 301, "5m1s from now"},
	} {
		if err := webhook.Verify(test.secrets, header, []byte(test.body), time.Unix(test.at, 0)); err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %s", name, err, test.words)
		}
	}
	if err := webhook.Verify(secrets, http.Header{}, body, time.Now()); err == nil {
		t.Error("a request without a signature was taken")
	}
}

// TestSigned changes from one secret to the next: while both sign, a receiver may have either.
func TestSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	publisher := r.publisher(t, webhook.Config{Secrets: []string{secret("n"), secret("o")}})
	messages := publishertest.Messages(1)
	if err := publisher.Publish(t.Context(), messages)[0]; err != nil {
		t.Fatal(err)
	}
	got := r.deliveries()[0]
	for letter, want := range map[string]bool{"n": true, "o": true, "x": false} {
		if err := webhook.Verify([]string{secret(letter)}, got.header, got.body, time.Now()); (err == nil) != want {
			t.Errorf("a receiver with secret %s: %v", letter, err)
		}
	}
	if id := got.header.Get("webhook-id"); id != messages[0].ID.String() {
		t.Errorf("the id is %s", id)
	}
	if got.method != http.MethodPost {
		t.Errorf("the method is %s", got.method)
	}

	if err := one(t, r.publisher(t, webhook.Config{})); err != nil {
		t.Fatal(err)
	}
	unsigned := r.deliveries()[1].header
	if unsigned.Get("webhook-signature") != "" || unsigned.Get("webhook-id") == "" || unsigned.Get("webhook-timestamp") == "" {
		t.Errorf("without a secret: %v", unsigned)
	}
}
