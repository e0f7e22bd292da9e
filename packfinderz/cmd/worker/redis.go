package main

import (
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/brokers/redis"
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
