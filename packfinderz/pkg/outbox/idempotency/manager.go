// Package idempotency lets a consumer have each event's effect once, although Pub/Sub and the publisher
// may deliver it twice. It remembers in Redis, under pf:evt:processed:<consumer>:<event_id>.
package idempotency

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/inbox"
)

// Config says where a manager remembers, and for how long.
type Config struct {
	// RedisURL is the address of Redis, such as redis://localhost:6379.
	RedisURL string
	// TTL is how long a handled event is remembered: PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL. Default 720h.
	TTL time.Duration
	// Processing is how long a killed consumer blocks its event at most. Default a minute.
	Processing time.Duration
	// Horizon is for how long Pub/Sub may deliver an event again: the subscription's retention. If it is
	// stated, a shorter TTL is refused.
	Horizon time.Duration
	// Logger is warned when Redis may forget what it should remember. Default slog.Default().
	Logger *slog.Logger
}

// Manager is the shared idempotency helper. Its CheckAndMarkProcessed marks an event before the effect
// and Delete takes the mark back after a failure. It is an inbox.Inbox, too: inbox.Handle with it loses no
// effect even if the consumer is killed between the two, and is what new consumers should use. Both use the
// same keys. Close it in the end.
type Manager struct{ *redis.Inbox }

// NewManager makes a manager. It needs no Redis yet.
func NewManager(config Config) (*Manager, error) {
	at, err := redis.ParseURL(config.RedisURL)
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	in, err := redis.NewInbox(redis.InboxConfig{
		Config: at, Logger: config.Logger,
		TTL: inbox.TTL{Done: config.TTL, Processing: config.Processing, Horizon: config.Horizon},
	})
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	return &Manager{in}, nil
}
