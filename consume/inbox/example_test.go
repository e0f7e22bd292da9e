package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// welcome is an example of docs/consuming.md: it is called for every delivery, and says
// whether to acknowledge it.
func welcome(ctx context.Context, in inbox.Inbox, event uuid.UUID, sendMail func(context.Context) error) (ack bool) {
	ran, err := inbox.Handle(ctx, in, "welcome-mail", event, sendMail)
	switch {
	case errors.Is(err, inbox.ErrNotMarked):
		fmt.Println("sent, but another delivery would send it again:", err)
		return true
	case err != nil:
		fmt.Println("not sent:", err)
		return false
	case ran:
		fmt.Println("sent")
	default:
		fmt.Println("sent before")
	}
	return true
}

// An event is delivered three times: its effect fails, then happens, and is not repeated.
func ExampleHandle() {
	in, err := inboxtest.NewMemory(inbox.TTL{}) // in production a store that processes share
	if err != nil {
		fmt.Println(err)
		return
	}
	event := uuid.MustParse("0198c1f2-7b1e-7cc3-98c4-dc0c0c07398f")
	away := errors.New("no connection to the mail server")
	for range 3 {
		ack := welcome(context.Background(), in, event, func(context.Context) error { return away })
		fmt.Println("ack:", ack)
		away = nil
	}
	// Output:
	// not sent: no connection to the mail server
	// ack: false
	// sent
	// ack: true
	// sent before
	// ack: true
}

// A memory that is shorter than the time for which events come again is refused.
func ExampleTTL_WithDefaults() {
	_, err := inbox.TTL{Done: 7 * 24 * time.Hour, Horizon: 8 * 24 * time.Hour}.WithDefaults()
	fmt.Println(err)
	// Output:
	// inbox: handled events would be forgotten after 168h0m0s, but may be delivered again for 192h0m0s
}
