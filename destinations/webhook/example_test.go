package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
)

// A receiver checks the signature before it believes a word, and acknowledges with 2xx.
func Example() {
	secrets := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if err := webhook.Verify(secrets, r.Header, body, time.Now()); err != nil {
			// 401, not 400: an event is never given up because a secret is wrong.
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Printf("%s: %s\n", r.Header.Get("Outbox-Event-Type"), body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()

	// Public addresses need no AllowPrivate.
	publisher, err := webhook.New(webhook.Config{URL: receiver.URL + "/hook", Secrets: secrets, AllowPrivate: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()
	// In a service this is the Publisher of an outbox.RelayConfig.
	fmt.Println(publisher.Publish(context.Background(), []outbox.Message{{
		Event: outbox.Event{ID: uuid.New(), Type: "order_created", Payload: []byte(`{"order": 42}`)},
	}}))
	// Output:
	// order_created: {"order": 42}
	// [<nil>]
}
