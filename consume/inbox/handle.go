package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// settlePatience limits Finish and Release, which outlive the caller's context: a stopping consumer still has
	// to settle its event.
	settlePatience = 10 * time.Second
	// finishPause is the first pause between two tries of Finish; it doubles.
	finishPause = 50 * time.Millisecond
)

// Handle runs the handler unless the consumer has handled the event before, and marks the event after the handler's
// success. It reports whether the handler ran.
//
//   - For a duplicate it returns false and no error: acknowledge it.
//   - For an event that is being handled elsewhere it returns ErrInProgress: have it delivered again.
//   - If the handler fails or panics, it releases the event and passes the error or panic on.
//   - If the effect could not be marked, it returns true and ErrNotMarked.
//
// Handle renews the claim while the handler runs, however long that takes. If the claim is lost nevertheless,
// because the store is unavailable or has forgotten it, the handler's context is cancelled with the cause ErrLost.
func Handle(
	ctx context.Context, in Inbox, consumer string, event uuid.UUID, handler func(ctx context.Context) error,
) (ran bool, err error) {
	if err := Check(consumer, event); err != nil {
		return false, err
	}
	began := time.Now() // before the store's time starts, so that we never think the claim longer than it is
	claim, err := in.Begin(ctx, consumer, event)
	if errors.Is(err, ErrDone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inbox: begin event %s for %s: %w", event, consumer, err)
	}
	kept := keep(ctx, claim, began)
	returned := false
	defer func() {
		if returned {
			return
		}
		// A panic, or runtime.Goexit. It is not recovered, so that it goes on with its own trace. Errors here are
		// dropped: a claim that cannot be released ends by itself.
		_ = kept.stop()
		_ = release(ctx, claim)
	}()
	err = handler(kept.handling)
	returned = true
	lost := kept.stop()
	if err == nil {
		return true, finish(ctx, claim, event)
	}
	released := release(ctx, claim)
	switch {
	case lost == nil && released != nil:
		err = errors.Join(err, released)
	case lost != nil && !errors.Is(err, ErrLost):
		// The handler only said that its context ended. The result of the release does not matter: the release was
		// for the case that only we believed the claim to be lost.
		err = errors.Join(err, lost)
	}
	return true, err
}

// finish tries until the event is marked: the effect has happened, and an unmarked event may be handled twice.
func finish(ctx context.Context, claim Claim, event uuid.UUID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	for pause := finishPause; ; pause *= 2 {
		err := claim.Finish(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrLost) {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("inbox: event %s: %w: %w", event, ErrNotMarked, err)
	}
}

func release(ctx context.Context, claim Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	if err := claim.Release(ctx); err != nil {
		return fmt.Errorf("inbox: release the event: %w", err)
	}
	return nil
}
