package idempotency_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
)

// deliver is a consumer: it checks before the effect, and takes the mark back when the effect fails, so that the
// event is handled when it is delivered again.
func deliver(ctx context.Context, events *idempotency.Manager, event uuid.UUID, effect func() error) error {
	done, err := events.CheckAndMarkProcessed(ctx, "compliance", event, 0)
	if err != nil || done {
		return err // nil, a duplicate: acknowledge it
	}
	if err := effect(); err != nil {
		return errors.Join(err, events.Delete(context.WithoutCancel(ctx), "compliance", event))
	}
	return nil
}

// One event is delivered three times: its effect fails, happens, and does not happen again.
func ExampleManager() {
	t := new(testserver.Example)
	defer t.Done()
	events, err := idempotency.NewManager(redistest.New(t).Client(), idempotency.Config{}) // in a program: your client
	if err != nil {
		fmt.Println(err)
		return
	}
	event := uuid.New()
	for _, outcome := range []error{errors.New("the database is away"), nil, nil} {
		err := deliver(context.Background(), events, event, func() error {
			fmt.Println("notify the store")
			return outcome
		})
		fmt.Println(err)
	}
	// Output:
	// notify the store
	// the database is away
	// notify the store
	// <nil>
	// <nil>
}
