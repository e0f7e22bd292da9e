// Package idempotency lets a consumer handle each event once, although Pub/Sub and the publisher may deliver it twice.
// It remembers events in Redis, under pf:evt:processed:<consumer>:<event_id>.
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

// Config configures a manager.
type Config struct {
	// TTL is how long a handled event is remembered: PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL. Default 720h.
	TTL time.Duration
	// Processing is the longest time that a killed consumer blocks its event. Default a minute.
	Processing time.Duration
	// Horizon is how long Pub/Sub may deliver an event again: the subscription's retention. If it is set, a shorter TTL
	// is refused.
	Horizon time.Duration
	// Logger is warned when Redis may forget what it should remember. Default slog.Default().
	Logger *slog.Logger
}

// Manager is the shared idempotency helper. CheckAndMarkProcessed marks an event before its effect, and Delete removes
// the mark after a failure. New consumers should use inbox.Handle with it, which loses no effect even if the consumer
// is killed in between. Both use the same keys.
type Manager struct{ *redisinbox.Inbox }

// NewManager returns a manager. It does not connect, and does not close the client.
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
