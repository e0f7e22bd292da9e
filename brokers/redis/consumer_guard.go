package redis

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
)

// guarded is a publisher of others, whose panic is a failure and not the end of the process.
type guarded struct{ outbox.Publisher }

func guard(publisher outbox.Publisher) outbox.Publisher {
	if publisher == nil {
		return nil
	}
	return guarded{publisher}
}

// Publish answers a panic with an error for every message.
func (g guarded) Publish(ctx context.Context, messages []outbox.Message) (errs []error) {
	defer func() {
		if value := recover(); value != nil {
			errs = make([]error, len(messages))
			for i := range errs {
				errs[i] = fmt.Errorf("it panicked: %v", value)
			}
		}
	}()
	return g.Publisher.Publish(ctx, messages)
}
