package pginbox_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/inboxtest"
)

// The wrong ways to mark an event, put back: the tests of kills must be able to tell them
// from the right one.
const (
	markBefore = "the mark in a transaction of its own, before the effect"
	markAfter  = "the mark in a transaction of its own, after the effect"
)

// deliverWrongly is what consumers write that have no inbox.
func (c *process) deliverWrongly(ctx context.Context, event uuid.UUID) error {
	nothing := func(context.Context, execute) error { return nil }
	work := func() error {
		tx, err := c.door.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		err = c.work(ctx, func(ctx context.Context, sql string, args ...any) error {
			_, err := tx.Exec(ctx, sql, args...)
			return err
		}, event)
		if err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	if c.order.Fault == markBefore {
		first, err := c.door.deliver(ctx, event, nothing)
		if err != nil || !first {
			return err
		}
		return work()
	}
	var marked bool
	row := c.door.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox_inbox WHERE event_id = $1)`, event)
	if err := row.Scan(&marked); err != nil || marked {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	c.Reach(inboxtest.AfterFinish) // of the effect; the mark is still to come
	_, err := c.door.deliver(ctx, event, nothing)
	return err
}

// TestMarkBeforeEffect loses the effect of a consumer that is killed in between: the next
// delivery takes the event for handled.
func TestMarkBeforeEffect(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	b.start(order{Door: "pgx", StandAt: inboxtest.AfterBegin, Fault: markBefore}).DeliverAndKill(event)
	b.start(order{Door: "pgx", Fault: markBefore}).DeliverAndKill(event)
	b.want(event, 0, 1)
}

// TestMarkAfterEffect has the effect twice.
func TestMarkAfterEffect(t *testing.T) {
	t.Parallel()
	b, event := newBench(t), uuid.New()
	b.start(order{Door: "pgx", StandAt: inboxtest.AfterFinish, Fault: markAfter}).DeliverAndKill(event)
	b.start(order{Door: "pgx", Fault: markAfter}).DeliverAndKill(event)
	b.want(event, 2, 1)
}
