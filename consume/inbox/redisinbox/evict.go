package redisinbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
)

// lookOnce warns of a Redis that may evict keys: an event whose mark is gone would be handled again. An unavailable
// Redis is asked again after the next claim.
func (i *Inbox) lookOnce(ctx context.Context) {
	if !i.looked.CompareAndSwap(false, true) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	// Use INFO, because hosted servers forbid CONFIG.
	info, err := i.client.Info(ctx, "memory").Result()
	policy := infoValue(info, "maxmemory_policy")
	var reply goredis.Error
	switch {
	case err != nil && !errors.As(err, &reply):
		i.looked.Store(false)
	case policy == "":
		err = cmp.Or(err, errors.New("it does not say"))
		i.config.Logger.Warn("could not ask Redis for its maxmemory-policy; with any but noeviction it may forget handled events", "error", outbox.ErrorText(err))
	case policy != "noeviction":
		i.config.Logger.Warn("Redis may evict keys when its memory is full: handled events would be handled again; set maxmemory-policy to noeviction",
			"maxmemory_policy", policy, "maxmemory", infoValue(info, "maxmemory"))
	}
}

const lookPatience = 2 * time.Second

// infoValue finds a value in the output of INFO.
func infoValue(info, name string) string {
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if found, value, _ := strings.Cut(lines.Text(), ":"); found == name {
			return value
		}
	}
	return ""
}
