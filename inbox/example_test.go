package inbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/inbox"
	"github.com/packfinderz/outbox/inbox/inboxtest"
)

// An event is delivered three times: its effect fails, then happens, and is not repeated.
func ExampleHandle() {
	ctx := context.Background()
	in, err := inboxtest.NewMemory(inbox.TTL{}) // in production a store that processes share
	if err != nil {
		fmt.Println(err)
		return
	}
	event := uuid.MustParse("0198c1f2-7b1e-7cc3-98c4-dc0c0c07398f")
	mail := errors.New("no connection to the mail server")
	for range 3 {
		ran, err := inbox.Handle(ctx, in, "welcome-mail", event, func(context.Context) error {
			defer func() { mail = nil }()
			return mail
		})
		switch {
		case err != nil:
			fmt.Println("nack:", err)
		case ran:
			fmt.Println("ack: sent")
		default:
			fmt.Println("ack: sent before")
		}
	}
	// Output:
	// nack: no connection to the mail server
	// ack: sent
	// ack: sent before
}
