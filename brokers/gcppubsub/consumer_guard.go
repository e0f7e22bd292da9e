package gcppubsub

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
)

// guarded is a publisher whose panics are failures.
type guarded struct{ outbox.Publisher }

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

// guard has the consumer outlive a handler or publisher that panics.
func guard(config consume.Config) consume.Config {
	if config.Handlers != nil {
		config.Handlers = guarded{config.Handlers}
	}
	if config.DeadLetters != nil {
		config.DeadLetters = guarded{config.DeadLetters}
	}
	return config
}
