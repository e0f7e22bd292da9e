package webhook_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/destinations/webhook"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
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
}

// TestForged has requests that only look as if they were signed: no signature, none but a part of one,
// and headers that are not those that were signed.
func TestForged(t *testing.T) {
	t.Parallel()
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	at, body, right := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	digest, err := base64.StdEncoding.DecodeString(right)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(digest []byte) string { return "v1," + base64.StdEncoding.EncodeToString(digest) }
	for name, test := range map[string]struct {
		header, value string // none if it is empty
		words         string
	}{
		"no signature":         {"Webhook-Signature", "", "no signature is right"},
		"a space":              {"Webhook-Signature", " ", "no signature is right"},
		"an empty signature":   {"Webhook-Signature", "v1,", "no signature is right"},
		"some empty ones":      {"Webhook-Signature", "v1, v1,", "no signature is right"},
		"its first byte":       {"Webhook-Signature", signed(digest[:1]), "no signature is right"},
		"half of it":           {"Webhook-Signature", signed(digest[:16]), "no signature is right"},
		"all but a byte of it": {"Webhook-Signature", signed(digest[:31]), "no signature is right"},
		"a byte more":          {"Webhook-Signature", signed(append(slices.Clone(digest), 0)), "no signature is right"},
		"another scheme":       {"Webhook-Signature", "v1a," + right, "no signature is right"},
		"no scheme":            {"Webhook-Signature", right, "no signature is right"},
		"not base64":           {"Webhook-Signature", "v1,*", "no signature is right"},
		"another id":           {"Webhook-Id", "msg_another", "no signature is right"},
		"another timestamp":    {"Webhook-Timestamp", "1614265331", "no signature is right"},
		"no id":                {"Webhook-Id", "", "the id or the timestamp is missing"},
		"no timestamp":         {"Webhook-Timestamp", "", "the id or the timestamp is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{
				"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {"v1," + right},
			}
			header.Set(test.header, test.value)
			if test.value == "" {
				header.Del(test.header)
			}
			if err := webhook.Verify([]string{key}, header, body, at); err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("with %s: %q the answer is %v, want %s", test.header, test.value, err, test.words)
			}
		})
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
