package main

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// openRedis makes a client that leaves it to the worker what to try again. It needs no Redis yet.
func openRedis(config config) (goredis.UniversalClient, error) {
	at, err := redis.ParseURL(config.redis)
	if err != nil {
		return nil, fmt.Errorf("%w: PACKFINDERZ_REDIS_URL: %w", env.ErrUsage, err)
	}
	if config.redisInsecure {
		// Still encrypted, for who listens and cannot change anything: Heroku signs its certificates itself, and changes them.
		at.TLS.InsecureSkipVerify = true
	}
	options, err := at.ClientOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: PACKFINDERZ_REDIS_URL: %w", env.ErrUsage, err)
	}
	return goredis.NewUniversalClient(options), nil
}

// redisLog has what the client of Redis logs.
type redisLog struct{ log *slog.Logger }

// Printf is a line of the client.
func (r redisLog) Printf(ctx context.Context, format string, args ...any) {
	r.log.WarnContext(ctx, "the Redis client says", "message", fmt.Sprintf(format, args...))
}
