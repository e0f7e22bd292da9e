package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keeper renews a claim while its handler runs.
type keeper struct {
	claim Claim
	// handling is the handler's context. It ends with the caller's, or when the claim is lost.
	handling context.Context
	end      context.CancelCauseFunc
	// renewing ends only with the handler: a handler that is slow to stop after its caller's context ended must
	// still be alone.
	renewing context.Context
	halt     context.CancelFunc
	halted   chan struct{}
	lost     error // read it after halted
}

// keep starts to renew a claim that began at began.
func keep(ctx context.Context, claim Claim, began time.Time) *keeper {
	k := &keeper{claim: claim, halted: make(chan struct{})}
	k.handling, k.end = context.WithCancelCause(ctx)
	k.renewing, k.halt = context.WithCancel(context.WithoutCancel(ctx))
	if claim.TTL() <= 0 {
		close(k.halted) // it has no end
		return k
	}
	go func() {
		defer close(k.halted)
		if err := k.renew(began.Add(claim.TTL())); err != nil {
			k.lost = err
			k.end(err)
		}
	}()
	return k
}

// stop stops renewing, and returns an error if the claim was lost.
func (k *keeper) stop() error {
	k.halt()
	<-k.halted
	k.end(nil)
	return k.lost
}

// renew renews the claim every third of its TTL. If the store cannot be reached it tries again until the claim has
// ended by our own clock; then it returns ErrLost.
func (k *keeper) renew(until time.Time) error {
	pause := k.claim.TTL() / 3
	for {
		select {
		case <-k.renewing.Done():
			return nil
		case <-time.After(pause):
		}
		asked := time.Now()
		err := k.ask(until)
		switch {
		case err == nil:
			until = asked.Add(k.claim.TTL())
			pause = k.claim.TTL() / 3
		case errors.Is(err, ErrLost):
			return fmt.Errorf("inbox: renew the claim: %w", err)
		case !time.Now().Before(until):
			return fmt.Errorf("inbox: %w: it could not be renewed in time: %w", ErrLost, err)
		default: // the store is unavailable, or the handler has returned
			pause = min(k.claim.TTL()/20, time.Until(until))
		}
	}
}

// ask renews once, and waits no longer than the claim lasts.
func (k *keeper) ask(until time.Time) error {
	ctx, cancel := context.WithDeadline(k.renewing, until)
	defer cancel()
	return k.claim.Renew(ctx)
}
