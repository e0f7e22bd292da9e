package redisinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
)

// CheckAndMarkProcessed marks an event as handled, in one SET NX EX, and reports whether it was marked before. A
// zero TTL means the inbox's.
//
// It marks before the effect. A consumer that fails calls Delete; one that is killed between the mark and the
// effect has lost the effect. Use inbox.Handle if that must not happen. For an event that Handle is handling it
// returns ErrInProgress, not true: the effect may still fail.
func (i *Inbox) CheckAndMarkProcessed(
	ctx context.Context, consumer string, eventID uuid.UUID, ttl time.Duration,
) (alreadyProcessed bool, err error) {
	ttl = cmp.Or(ttl, i.config.TTL.Done)
	if err := inbox.Check(consumer, eventID); err != nil {
		return false, err
	}
	if ttl < time.Second {
		return false, fmt.Errorf("inbox: handled events would be remembered for %s; choose a second or more", ttl)
	}
	if err := inbox.CheckHorizon(ttl, i.config.TTL.Horizon); err != nil {
		return false, err
	}
	key, mark := i.key(consumer, eventID), done+uuid.NewString()
	err = i.put(ctx, key, mark, ttl)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, inbox.ErrDone):
		return true, nil
	case !errors.Is(err, inbox.ErrInProgress):
		i.unmark(ctx, key, mark)
	}
	return false, fmt.Errorf("inbox: event %s for %s: %w", eventID, consumer, err)
}

// unmark removes a mark that may or may not have been made: if it stayed, the event would look handled. It can only
// try; the token keeps it from removing another's.
func (i *Inbox) unmark(ctx context.Context, key, mark string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkPatience)
	defer cancel()
	_ = releaseScript.Eval(ctx, i.client, []string{key}, mark).Err() // the caller has the first error
}

const unmarkPatience = time.Second

// deleteScript leaves alone what Handle is handling.
var deleteScript = goredis.NewScript(`
local value = redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) == ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1`)

// Delete makes a consumer forget an event, so that the next delivery handles it: after a failed effect, or to have
// it handled again on purpose. It leaves an event alone that Handle is handling, and returns ErrInProgress.
func (i *Inbox) Delete(ctx context.Context, consumer string, eventID uuid.UUID) error {
	if err := inbox.Check(consumer, eventID); err != nil {
		return err
	}
	ctx, cancel := i.bound(ctx)
	defer cancel()
	deleted, err := deleteScript.Run(ctx, i.client, []string{i.key(consumer, eventID)}, processing).Bool()
	switch {
	case err != nil:
		err = away("forgetting the event", err)
	case !deleted:
		err = inbox.ErrInProgress
	default:
		return nil
	}
	return fmt.Errorf("inbox: event %s for %s: %w", eventID, consumer, err)
}
