package relays_test

import (
	"context"

	"github.com/packfinderz/outbox"
)

// handOver is a publisher that is a function.
type handOver func(ctx context.Context, messages []outbox.Message) []error

func (h handOver) Publish(ctx context.Context, messages []outbox.Message) []error {
	return h(ctx, messages)
}
