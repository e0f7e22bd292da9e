package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/internal/consuming"
)

// awaitTopics waits until the topics exist, and creates them with Create: the client would silently read nothing.
func (c *Consumer) awaitTopics(ctx context.Context) error {
	asker, err := kafka.New(c.config.Broker)
	if err != nil {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	defer func() { _ = asker.Close() }() // it has nothing to say
	retry := outbox.RetryPolicy{Base: 50 * time.Millisecond, Max: time.Second}
	told := false
	for tries := 1; ctx.Err() == nil; tries++ {
		switch err := asker.FindTopics(ctx, c.config.Topics...); {
		case err == nil && told:
			c.log.Info("the topics are there")
			return nil
		case err == nil || ctx.Err() != nil:
			return nil
		case !told:
			told = true
			c.log.Warn("the topics cannot be read; waiting", "error", err)
		}
		consuming.Pause(ctx, retry.Delay(tries))
	}
	return nil
}
