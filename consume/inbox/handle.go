package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// settlePatience limits Finish and Release, which do not end with the caller's context: a
	// consumer that is being stopped still has to say what became of its event.
	settlePatience = 10 * time.Second
	// finishPause is the first pause between two tries of Finish; it doubles.
	finishPause = 50 * time.Millisecond
)

// Handle runs the handler unless the consumer has handled the event before, and marks the
// event after the handler's success. It reports whether the handler ran.
//
//   - A duplicate answers false and no error: acknowledge it.
//   - An event that is being handled elsewhere answers ErrInProgress: have it delivered again.
//   - An error or a panic of the handler releases the event, and goes on to the caller.
//   - An effect that could not be marked answers true and ErrNotMarked.
//
// The claim is renewed while the handler runs, however long that takes. When it is lost
// nevertheless, because the store is away or has forgotten it, the handler's context is
// cancelled with the cause ErrLost.
func Handle(
	ctx context.Context, in Inbox, consumer string, event uuid.UUID, handler func(ctx context.Context) error,
) (ran bool, err error) {
	if err := Check(consumer, event); err != nil {
		return false, err
	}
	began := time.Now() // before the store counts, so that the claim is never believed to be longer than it is
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
		// A panic, or runtime.Goexit. It is not recovered, so that it goes on with its own trace.
		// Who handles it learns of nothing else: a claim that cannot be released ends by itself.
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
		// The handler said only that its context had ended. What became of the release does not
		// matter: it was for the case that only we believed the claim to be lost.
		err = errors.Join(err, lost)
	}
	return true, err
}

// finish tries until the event is marked: the effect has happened, and every error left
// standing here may become a second one.
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
