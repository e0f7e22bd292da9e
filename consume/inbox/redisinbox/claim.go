package redisinbox

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
)

// The steps of a claim. Each is one script, so that nothing comes between the proof and the change. KEYS[1] is the
// event's key; ARGV are the expected value and the new one.
var (
	renewScript = goredis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

	releaseScript = goredis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)

	// finishScript accepts "done" by the same token, because the first answer may have been lost. It accepts an
	// absent key, because the claim may have ended with nobody else taking it: the effect has happened.
	finishScript = goredis.NewScript(`
local value = redis.call('GET', KEYS[1])
if value == ARGV[2] then return 1 end
if value and value ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`)
)

// claim is an event that a token holds.
type claim struct {
	inbox *Inbox
	key   string
	token string
}

// TTL returns the processing TTL.
func (c *claim) TTL() time.Duration { return c.inbox.config.TTL.Processing }

// Renew extends the claim to the TTL from now.
func (c *claim) Renew(ctx context.Context) error {
	return c.run(ctx, "renewing the claim", renewScript, processing+c.token, c.TTL().Milliseconds())
}

// Finish marks the event as handled.
func (c *claim) Finish(ctx context.Context) error {
	return c.run(ctx, "marking the event", finishScript, processing+c.token, done+c.token, c.inbox.config.TTL.Done.Milliseconds())
}

// Release gives the event back.
func (c *claim) Release(ctx context.Context) error {
	return c.run(ctx, "giving the event back", releaseScript, processing+c.token)
}

func (c *claim) run(ctx context.Context, doing string, script *goredis.Script, args ...any) error {
	ctx, cancel := c.inbox.bound(ctx)
	defer cancel()
	ours, err := script.Run(ctx, c.inbox.client, []string{c.key}, args...).Bool()
	switch {
	case err != nil:
		return away(doing, err)
	case !ours:
		return inbox.ErrLost
	}
	return nil
}
