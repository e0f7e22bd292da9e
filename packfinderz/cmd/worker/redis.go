package main

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// openRedis returns a client that leaves retries to the worker. It does not connect.
func openRedis(config config) (goredis.UniversalClient, error) {
	at, err := redis.ParseURL(config.redis)
	if err != nil {
		return nil, fmt.Errorf("%w: PACKFINDERZ_REDIS_URL: %w", env.ErrUsage, err)
	}
	if config.redisInsecure {
		// Heroku signs its certificates itself, and changes them. The connection is still encrypted.
		at.TLS.InsecureSkipVerify = true
	}
	options, err := at.ClientOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: PACKFINDERZ_REDIS_URL: %w", env.ErrUsage, err)
	}
	return goredis.NewUniversalClient(options), nil
}

// redisLog logs what the Redis client logs.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, args ...any) {
	r.log.WarnContext(ctx, "the Redis client says", "message", fmt.Sprintf(format, args...))
}
