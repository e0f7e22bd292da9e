// Package idempotency lets a consumer have each event's effect once, although Pub/Sub and the publisher
// may deliver it twice. It remembers in Redis, under pf:evt:processed:<consumer>:<event_id>.
package idempotency

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
)

// Config says for how long a manager remembers.
type Config struct {
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
// same keys.
type Manager struct{ *redisinbox.Inbox }

// NewManager makes a manager on a client of Redis, which stays the caller's to close. It needs no Redis yet.
func NewManager(client goredis.UniversalClient, config Config) (*Manager, error) {
	// A *redis.Client that is nil is not nil as an interface.
	if at := reflect.ValueOf(client); client == nil || at.Kind() == reflect.Pointer && at.IsNil() {
		return nil, errors.New("idempotency: the Redis client is nil")
	}
	in, err := redisinbox.New(redisinbox.Config{
		Client: client, Logger: config.Logger,
		TTL: inbox.TTL{Done: config.TTL, Processing: config.Processing, Horizon: config.Horizon},
	})
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	return &Manager{in}, nil
}
