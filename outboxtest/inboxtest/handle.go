package inboxtest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
)

var errEffect = errors.New("the effect failed")

// handle runs Handle and fails unless it answers so.
func handle(
	t *testing.T, in inbox.Inbox, event uuid.UUID, handler func(context.Context) error, wantRan bool, wantErr error,
) {
	t.Helper()
	ran, err := inbox.Handle(t.Context(), in, consumer, event, handler)
	if ran != wantRan || !errors.Is(err, wantErr) {
		t.Fatalf("handled: %t, %v; want %t, %v", ran, err, wantRan, wantErr)
	}
}

func succeed(context.Context) error { return nil }

func testHandleOnce(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	handle(t, in, event, func(ctx context.Context) error {
		handle(t, in, event, succeed, false, inbox.ErrInProgress)
		return ctx.Err()
	}, true, nil)
	for range 3 {
		handle(t, in, event, succeed, false, nil)
	}
	handle(t, in, id(), succeed, true, nil)
}

// testHandleRace has every consumer try until the event is handled, as redelivery would.
func testHandleRace(t *testing.T, h Harness) {
	t.Helper()
	const consumers = 64
	event := id()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var effects, running atomic.Int32
	var wg sync.WaitGroup
	for range consumers {
		in := h.Open(t, inbox.TTL{})
		wg.Go(func() {
			for {
				_, err := inbox.Handle(ctx, in, consumer, event, func(context.Context) error {
					if running.Add(1) > 1 {
						t.Error("two handlers run at once")
					}
					runtime.Gosched()
					running.Add(-1)
					effects.Add(1)
					return nil
				})
				if err == nil {
					return
				}
				if !errors.Is(err, inbox.ErrInProgress) || ctx.Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := effects.Load(); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func testHandleError(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	for range 2 {
		handle(t, in, event, func(context.Context) error { return errEffect }, true, errEffect)
	}
	handle(t, in, event, succeed, true, nil)
}

func testHandlePanic(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	func() {
		defer func() {
			if recovered := recover(); recovered != errEffect { //nolint:errorlint // the very value of the panic
				t.Errorf("recovered %v, want the panic of the handler", recovered)
			}
		}()
		_, _ = inbox.Handle(t.Context(), in, consumer, event, func(context.Context) error {
			panic(errEffect) //nolint:forbidigo // a test of panics
		})
	}()
	handle(t, in, event, succeed, true, nil)
}

// testHandleGoexit is what t.FailNow does in a handler.
func testHandleGoexit(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{}), id()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = inbox.Handle(t.Context(), in, consumer, event, func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	})
	wg.Wait()
	handle(t, in, event, succeed, true, nil)
}

// testHandleStopped cancels the caller's context while the handler runs.
func testHandleStopped(t *testing.T, h Harness) {
	t.Helper()
	in, failed, done := h.Open(t, inbox.TTL{}), id(), id()
	ctx, cancel := context.WithCancel(t.Context())
	ran, err := inbox.Handle(ctx, in, consumer, failed, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !ran || !errors.Is(err, context.Canceled) {
		t.Fatalf("handled: %t, %v", ran, err)
	}
	handle(t, in, failed, succeed, true, nil)

	ctx, cancel = context.WithCancel(t.Context())
	ran, err = inbox.Handle(ctx, in, consumer, done, func(context.Context) error {
		cancel()
		return nil
	})
	if !ran || err != nil {
		t.Fatalf("handled: %t, %v", ran, err)
	}
	handle(t, in, done, succeed, false, nil)
}

// testHandleSlow has a handler that is slower than the processing TTL.
func testHandleSlow(t *testing.T, h Harness) {
	t.Helper()
	in, event := &watched{Inbox: h.Open(t, inbox.TTL{Processing: short}), renewed: make(chan struct{}, 100)}, id()
	handle(t, in, event, func(ctx context.Context) error {
		for range 4 { // a third of the TTL each
			select {
			case <-in.renewed:
			case <-time.After(patience):
				t.Error("the claim is not renewed")
			}
			handle(t, in, event, succeed, false, inbox.ErrInProgress)
		}
		return context.Cause(ctx)
	}, true, nil)
	handle(t, in, event, succeed, false, nil)
}

// watched tells of every renewal that succeeded.
type watched struct {
	inbox.Inbox
	renewed chan struct{}
}

func (w *watched) Begin(ctx context.Context, consumer string, event uuid.UUID) (inbox.Claim, error) {
	claim, err := w.Inbox.Begin(ctx, consumer, event)
	if err != nil {
		return nil, err
	}
	return &watchedClaim{claim, w.renewed}, nil
}

type watchedClaim struct {
	inbox.Claim
	renewed chan struct{}
}

func (c *watchedClaim) Renew(ctx context.Context) error {
	err := c.Claim.Renew(ctx)
	if err == nil {
		c.renewed <- struct{}{}
	}
	return err
}

func testHandleLost(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{Processing: short}), id()
	handle(t, in, event, func(ctx context.Context) error {
		awaitLost(ctx, t, h)
		return ctx.Err()
	}, true, inbox.ErrLost)
	handle(t, in, event, succeed, true, nil)
}

// testHandleTakenOver has a handler that goes on after its claim is lost.
func testHandleTakenOver(t *testing.T, h Harness) {
	t.Helper()
	in, event := h.Open(t, inbox.TTL{Processing: short}), id()
	handle(t, in, event, func(ctx context.Context) error {
		awaitLost(ctx, t, h)
		handle(t, in, event, succeed, true, nil)
		return nil
	}, true, inbox.ErrNotMarked)
	handle(t, in, event, succeed, false, nil)
}

// awaitLost takes the claim of a running handler away.
func awaitLost(ctx context.Context, t *testing.T, h Harness) {
	t.Helper()
	h.Expire(t)
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Error("the handler is not told that its claim is lost")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, inbox.ErrLost) {
		t.Errorf("the handler's context ended by %v, want %v", cause, inbox.ErrLost)
	}
}
