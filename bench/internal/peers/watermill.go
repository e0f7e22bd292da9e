package peers

// What the modes of watermill-sql have in common: a subscriber whose messages are acknowledged as they come. More than
// one subscriber would not help: in both modes they wait for each other's row locks.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	watermillModule   = "github.com/ThreeDotsLabs/watermill-sql/v4"
	watermillSettings = "no ack deadline, native pgx"
	watermillTopic    = "events"
	// watermillPause is how long the subscriber waits after an error or when it finds nothing.
	watermillPause = time.Millisecond
)

// watermillMode is a pair of adapters that belong together, and what we must know about their tables.
type watermillMode struct {
	schema    sql.SchemaAdapter
	offsets   sql.OffsetsAdapter
	table     string // that of the messages
	countOpen string // a query that counts messages which are not acknowledged
}

// newWatermill returns a peer from a function that sets a mode up for a batch size.
func newWatermill(name string, mode func(batch int) watermillMode) Peer {
	return Peer{
		Name:     name,
		Module:   watermillModule,
		Settings: watermillSettings,
		Run: func(ctx context.Context, url string, w Workload) (time.Duration, error) {
			return mode(cmp.Or(w.Batch, defaultBatch)).run(ctx, url, w)
		},
	}
}

func (m watermillMode) run(ctx context.Context, url string, w Workload) (time.Duration, error) {
	pool, err := open(ctx, url, w)
	if err != nil {
		return 0, err
	}
	defer pool.Close()

	watch := newAckWatch(w.Events)
	subscriber, err := sql.NewSubscriber(sql.BeginnerFromPgx(pool), sql.SubscriberConfig{
		AckDeadline:    new(time.Duration), // zero: no timer for each message
		BackoffManager: watch,
		SchemaAdapter:  m.schema,
		OffsetsAdapter: m.offsets,
	}, watermill.NopLogger{})
	if err != nil {
		return 0, fmt.Errorf("making the subscriber: %w", err)
	}
	if err := subscriber.SubscribeInitialize(watermillTopic); err != nil {
		return 0, fmt.Errorf("making the tables: %w", err)
	}
	if err := m.publish(ctx, pool, w); err != nil {
		return 0, err
	}
	if err := settle(ctx, pool, m.table); err != nil {
		return 0, err
	}

	start := time.Now()
	messages, err := subscriber.Subscribe(ctx, watermillTopic)
	if err != nil {
		return 0, fmt.Errorf("subscribing: %w", err)
	}
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for event := range messages {
			watch.handled.Add(1)
			event.Ack()
		}
	}()
	select {
	case <-watch.allAcked:
	case <-ctx.Done():
	}
	elapsed := time.Since(start)
	if err := subscriber.Close(); err != nil {
		return 0, fmt.Errorf("closing the subscriber: %w", err)
	}
	<-consumed
	handled := watch.handled.Load()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("consuming, %d of %d done: %w", handled, w.Events, errors.Join(err, watch.lastErr))
	}
	return elapsed, verify(ctx, pool, w, handled, m.countOpen)
}

// publish inserts the events through watermill's own publisher.
func (m watermillMode) publish(ctx context.Context, pool *pgxpool.Pool, w Workload) error {
	config := sql.PublisherConfig{SchemaAdapter: m.schema}
	publisher, err := sql.NewPublisher(sql.BeginnerFromPgx(pool), config, watermill.NopLogger{})
	if err != nil {
		return fmt.Errorf("making the publisher: %w", err)
	}
	for left := w.Events; left > 0; {
		events := make([]*message.Message, min(insertSize, left))
		for i := range events {
			events[i] = message.NewMessageWithContext(ctx, watermill.NewUUID(), w.Payload)
		}
		if err := publisher.Publish(watermillTopic, events...); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		left -= len(events)
	}
	if err := publisher.Close(); err != nil {
		return fmt.Errorf("closing the publisher: %w", err)
	}
	return nil
}

// ackWatch learns when a batch is acknowledged: after the transaction of each, the subscriber asks its BackoffManager
// how long to wait.
type ackWatch struct {
	sql.BackoffManager
	events   int64
	handled  atomic.Int64
	allAcked chan struct{} // closed when all events are handled and acknowledged
	lastErr  error         // to be read when the subscriber is closed
}

func newAckWatch(events int) *ackWatch {
	return &ackWatch{
		BackoffManager: sql.NewDefaultBackoffManager(watermillPause, watermillPause),
		events:         int64(events),
		allAcked:       make(chan struct{}),
	}
}

// HandleError implements sql.BackoffManager.
func (a *ackWatch) HandleError(logger watermill.LoggerAdapter, noMessage bool, err error) time.Duration {
	if err != nil {
		a.lastErr = err
	} else if a.handled.Load() >= a.events {
		select {
		case <-a.allAcked:
		default:
			close(a.allAcked)
		}
	}
	return a.BackoffManager.HandleError(logger, noMessage, err)
}
