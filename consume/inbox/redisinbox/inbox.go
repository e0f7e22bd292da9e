// Package redisinbox is an inbox on Redis: it lets a consumer handle each event once.
package redisinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
)

// DefaultKeyPrefix is the default of Config.KeyPrefix.
const DefaultKeyPrefix = "pf"

// Config configures an inbox.
type Config struct {
	// Client is the Redis client. The caller closes it. Its own retries and timeouts apply, within five seconds a
	// call.
	Client goredis.UniversalClient
	// KeyPrefix begins every key, as in pf:evt:processed:billing:<event id>. Default pf.
	KeyPrefix string
	// TTL is how long claims last and handled events are remembered.
	TTL inbox.TTL
	// Logger logs a warning if Redis may evict keys. Default slog.Default().
	Logger *slog.Logger
}

// Inbox is an inbox.Inbox on Redis. It is safe for concurrent use, and several may share the keys.
//
// A key is absent, or "processing:" and the token of its claim; anything else means done. Both expire by themselves.
// Every error of Redis is outbox.Unavailable, because it must not make the event a dead letter.
type Inbox struct {
	config Config
	client goredis.UniversalClient
	looked atomic.Bool // it is known whether Redis may evict, or it cannot be
}

// New returns an inbox. Redis may be unavailable: calls fail until it is back. If it is available, New checks
// whether it may evict keys.
func New(config Config) (*Inbox, error) {
	if config.Client == nil {
		return nil, errors.New("redisinbox: Config.Client is missing")
	}
	var err error
	if config.TTL, err = config.TTL.WithDefaults(); err != nil {
		return nil, err
	}
	config.KeyPrefix = cmp.Or(config.KeyPrefix, DefaultKeyPrefix)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	i := &Inbox{config: config, client: config.Client}
	i.lookOnce(context.Background())
	return i, nil
}

// Ping checks that Redis can set a key and delete it, which is what an inbox needs. A Redis that is full, or a
// replica, would still answer a plain PING.
func (i *Inbox) Ping(ctx context.Context) error {
	ctx, cancel := i.bound(ctx)
	defer cancel()
	// No consumer has an empty name, so this is no event's key; it needs the same rights.
	key, token := i.config.KeyPrefix+":evt:processed::ping", uuid.NewString()
	err := i.client.Set(ctx, key, token, pingTTL).Err()
	if err == nil {
		err = releaseScript.Run(ctx, i.client, []string{key}, token).Err() // 0 if another ping runs at the same time
	}
	if err != nil {
		return away("asking whether it takes keys", err)
	}
	return nil
}

// pingTTL is how long the key of a ping stays if its sender dies.
const pingTTL = time.Second

// The two states of a key.
const (
	processing = "processing:"
	done       = "done:"
)

// Begin claims an event for one consumer, for the processing TTL.
func (i *Inbox) Begin(ctx context.Context, consumer string, event uuid.UUID) (inbox.Claim, error) {
	if err := inbox.Check(consumer, event); err != nil {
		return nil, err
	}
	c := &claim{inbox: i, key: i.key(consumer, event), token: uuid.NewString()}
	if err := i.put(ctx, c.key, processing+c.token, i.config.TTL.Processing); err != nil {
		return nil, err
	}
	return c, nil
}

func (i *Inbox) key(consumer string, event uuid.UUID) string {
	return i.config.KeyPrefix + ":evt:processed:" + consumer + ":" + event.String()
}

// put sets a key that must be absent. Otherwise it returns ErrDone or ErrInProgress.
func (i *Inbox) put(ctx context.Context, key, value string, ttl time.Duration) error {
	for {
		put, err := i.tryPut(ctx, key, value, ttl)
		if put || err != nil {
			return err
		}
		// It existed, and expired before we read it.
	}
}

func (i *Inbox) tryPut(ctx context.Context, key, value string, ttl time.Duration) (put bool, err error) {
	ctx, cancel := i.bound(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return false, err // before anything is sent
	}
	err = i.client.SetArgs(ctx, key, value, goredis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if err == nil {
		i.lookOnce(ctx)
		return true, nil
	}
	if !errors.Is(err, goredis.Nil) {
		return false, away("taking the event", err)
	}
	var held *goredis.StringCmd
	var left *goredis.DurationCmd
	_, err = i.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		held, left = pipe.Get(ctx, key), pipe.PTTL(ctx, key)
		return nil
	})
	switch {
	case errors.Is(err, goredis.Nil):
		return false, nil
	case err != nil:
		return false, away("asking who has the event", err)
	case !strings.HasPrefix(held.Val(), processing):
		return false, inbox.ErrDone
	}
	return false, &inbox.InProgressError{Left: max(left.Val(), time.Millisecond)}
}

// callPatience bounds one call: a hanging server must not hold up a consumer for long.
const callPatience = 5 * time.Second

func (i *Inbox) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(callPatience, i.config.TTL.Processing))
}

// away wraps an error of Redis, which says nothing about an event.
func away(doing string, err error) error {
	return outbox.Unavailable(fmt.Errorf("redis: %s: %w", doing, err))
}
