package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// These tests run on a clock of their own, which goes on as soon as everybody waits: the
// times are exact.

const ttl = 30 * time.Second

var errAway = errors.New("the store is away")

// faulty is an inbox in memory whose claims can be made to fail; nil does not.
type faulty struct {
	*inboxtest.Memory
	renew, finish, release func(ctx context.Context) error
	// answer fails after the store has done as asked.
	answer func() error
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	memory, err := inboxtest.NewMemory(inbox.TTL{Processing: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return &faulty{Memory: memory}
}

func (f *faulty) Begin(ctx context.Context, consumer string, event uuid.UUID) (inbox.Claim, error) {
	claim, err := f.Memory.Begin(ctx, consumer, event)
	if err != nil {
		return nil, err
	}
	return &faultyClaim{claim, f}, nil
}

type faultyClaim struct {
	inbox.Claim
	f *faulty
}

func (c *faultyClaim) Renew(ctx context.Context) error {
	return c.f.do(ctx, c.f.renew, c.Claim.Renew)
}

func (c *faultyClaim) Finish(ctx context.Context) error {
	return c.f.do(ctx, c.f.finish, c.Claim.Finish)
}

func (c *faultyClaim) Release(ctx context.Context) error {
	return c.f.do(ctx, c.f.release, c.Claim.Release)
}

func (f *faulty) do(ctx context.Context, fault, step func(context.Context) error) error {
	if fault != nil {
		if err := fault(ctx); err != nil {
			return err
		}
	}
	err := step(ctx)
	if f.answer != nil && err == nil {
		err = f.answer()
	}
	return err
}

func away(context.Context) error { return errAway }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// untilLost is a handler that waits for the loss of its claim, for ten TTLs at most.
func untilLost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(10 * ttl):
		return nil
	}
}

// TestStoreAway has a store that cannot be reached, or does not answer, while a handler runs:
// the handler ends before another could begin.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(context.Context) error{"refuses": away, "hangs": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, began := newFaulty(t), time.Now()
				in.renew, in.release = fault, fault
				_, err := inbox.Handle(t.Context(), in, "billing", uuid.New(), func(ctx context.Context) error {
					err := untilLost(ctx)
					if took := time.Since(began); took != ttl {
						t.Errorf("the handler was told after %s, want %s", took, ttl)
					}
					return err
				})
				if !errors.Is(err, inbox.ErrLost) {
					t.Errorf("handled: %v, want %v", err, inbox.ErrLost)
				}
			})
		})
	}
}

// TestStoreAwayForAWhile is shorter than what is left of a claim that is due for renewal.
func TestStoreAwayForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, began := newFaulty(t), time.Now()
		in.renew = func(context.Context) error {
			if time.Since(began)%(2*ttl) < ttl*6/10 {
				return errAway
			}
			return nil
		}
		ran, err := inbox.Handle(t.Context(), in, "billing", uuid.New(), untilLost)
		if !ran || err != nil {
			t.Errorf("handled: %t, %v", ran, err)
		}
	})
}

// TestRenewsWhileStopping has a handler that takes its time after the caller's context has
// ended: nobody else may begin.
func TestRenewsWhileStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, event := newFaulty(t), uuid.New()
		ctx, cancel := context.WithCancel(t.Context())
		ran, err := inbox.Handle(ctx, in, "billing", event, func(context.Context) error {
			cancel()
			pass(5 * ttl)
			if _, err := in.Begin(t.Context(), "billing", event); !errors.Is(err, inbox.ErrInProgress) {
				t.Errorf("begin beside a handler: %v", err)
			}
			return nil
		})
		if !ran || err != nil || !in.Done("billing", event) {
			t.Errorf("handled: %t, %v", ran, err)
		}
	})
}

// TestKilled leaves a claim behind: the event is free after the processing TTL, not later.
func TestKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, event := newFaulty(t), uuid.New()
		if _, err := in.Begin(t.Context(), "billing", event); err != nil {
			t.Fatal(err)
		}
		pass(ttl - time.Millisecond)
		nothing := func(context.Context) error { return nil }
		if _, err := inbox.Handle(t.Context(), in, "billing", event, nothing); !errors.Is(err, inbox.ErrInProgress) {
			t.Errorf("before the end: %v", err)
		}
		pass(time.Millisecond)
		if ran, err := inbox.Handle(t.Context(), in, "billing", event, nothing); !ran || err != nil {
			t.Errorf("after the end: %t, %v", ran, err)
		}
		pass(inbox.DefaultDone - time.Millisecond)
		if ran, err := inbox.Handle(t.Context(), in, "billing", event, nothing); ran || err != nil {
			t.Errorf("done, and not forgotten: %t, %v", ran, err)
		}
	})
}

// TestFinishFails has an effect that cannot be marked: the error says so, and does not take
// for ever.
func TestFinishFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(context.Context) error{"refuses": away, "hangs": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, event, began := newFaulty(t), uuid.New(), time.Now()
				in.finish = fault
				ran, err := inbox.Handle(t.Context(), in, "billing", event, func(context.Context) error { return nil })
				if !ran || !errors.Is(err, inbox.ErrNotMarked) || !strings.Contains(err.Error(), event.String()) {
					t.Errorf("handled: %t, %v", ran, err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestFinishFailsForAWhile marks the event nevertheless.
func TestFinishFailsForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, event, began := newFaulty(t), uuid.New(), time.Now()
		in.finish = func(context.Context) error {
			if time.Since(began) < 2*time.Second {
				return errAway
			}
			return nil
		}
		ran, err := inbox.Handle(t.Context(), in, "billing", event, func(context.Context) error { return nil })
		if !ran || err != nil || !in.Done("billing", event) {
			t.Errorf("handled: %t, %v", ran, err)
		}
	})
}

// TestFinishAnswerLost has the store mark the event, and its answer lost.
func TestFinishAnswerLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, event, answers := newFaulty(t), uuid.New(), 0
		in.answer = func() error {
			if answers++; answers == 1 {
				return errAway
			}
			return nil
		}
		ran, err := inbox.Handle(t.Context(), in, "billing", event, func(context.Context) error { return nil })
		if !ran || err != nil || answers != 2 {
			t.Errorf("handled: %t, %v, with %d answers", ran, err, answers)
		}
	})
}

// TestReleaseFails shows both errors, and blocks the event no longer than its claim.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, event, errEffect := newFaulty(t), uuid.New(), errors.New("the effect failed")
		in.release = away
		ran, err := inbox.Handle(t.Context(), in, "billing", event, func(context.Context) error { return errEffect })
		if !ran || !errors.Is(err, errEffect) || !errors.Is(err, errAway) {
			t.Errorf("handled: %t, %v", ran, err)
		}
		pass(ttl)
		if ran, err = inbox.Handle(t.Context(), in, "billing", event, func(context.Context) error { return nil }); !ran || err != nil {
			t.Errorf("handled again: %t, %v", ran, err)
		}
	})
}

// unreachable is an inbox whose store is away.
type unreachable struct{}

func (unreachable) Begin(context.Context, string, uuid.UUID) (inbox.Claim, error) {
	return nil, errAway
}

// TestBeginFails must not be taken for "handled", nor for "not handled".
func TestBeginFails(t *testing.T) {
	t.Parallel()
	ran, err := inbox.Handle(t.Context(), unreachable{}, "billing", uuid.New(), func(context.Context) error {
		t.Error("the handler ran")
		return nil
	})
	if ran || !errors.Is(err, errAway) {
		t.Errorf("handled: %t, %v", ran, err)
	}
}

// pass lets time pass, on the clock of a test's bubble.
func pass(d time.Duration) { <-time.After(d) }
