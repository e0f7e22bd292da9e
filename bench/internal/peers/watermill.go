package peers

// What the modes of watermill-sql have in common: a subscriber whose messages are acknowledged as they come.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	watermillModule = "github.com/ThreeDotsLabs/watermill-sql/v4"
	watermillTopic  = "events"
)

var (
	WMDeadline = time.Duration(0)
	WMBatch = batchSize
	WMInsert = insertSize
	WMSettle = true
	WMBytea = false
)

// watermillMode is a pair of adapters that belong together.
type watermillMode struct {
	schema    sql.SchemaAdapter
	offsets   sql.OffsetsAdapter
	table     string // of the messages, as the schema adapter names it
	countOpen string // the query that counts messages without acknowledgement
}

func (m watermillMode) run(ctx context.Context, url string, w Workload) (time.Duration, error) {
	pool, err := open(ctx, url, w)
	if err != nil {
		return 0, err
	}
	defer pool.Close()

	var handled atomic.Int64
	acked := newAckWatch(func() bool { return handled.Load() >= int64(w.Events) })
	subscriber, err := sql.NewSubscriber(sql.BeginnerFromPgx(pool), sql.SubscriberConfig{
		AckDeadline:    &WMDeadline,
		BackoffManager: acked,
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
	if WMSettle {
	if err := settle(ctx, pool, m.table); err != nil {
		return 0, err
	}}

	start := time.Now()
	messages, err := subscriber.Subscribe(ctx, watermillTopic)
	if err != nil {
		return 0, fmt.Errorf("subscribing: %w", err)
	}
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for event := range messages {
			handled.Add(1)
			event.Ack()
		}
	}()
	select {
	case <-acked.done:
	case <-ctx.Done():
	}
	elapsed := time.Since(start)
	if err := subscriber.Close(); err != nil {
		return 0, fmt.Errorf("closing the subscriber: %w", err)
	}
	<-consumed
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("after %d of %d events: %w", handled.Load(), w.Events, err)
	}
	return elapsed, verify(ctx, pool, w, handled.Load(), m.countOpen)
}

// publish inserts the events through watermill's own publisher.
func (m watermillMode) publish(ctx context.Context, pool *pgxpool.Pool, w Workload) error {
	publisher, err := sql.NewPublisher(sql.BeginnerFromPgx(pool), sql.PublisherConfig{SchemaAdapter: m.schema}, watermill.NopLogger{})
	if err != nil {
		return fmt.Errorf("making the publisher: %w", err)
	}
	for left := w.Events; left > 0; {
		events := make([]*message.Message, min(WMInsert, left))
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

// ackWatch learns when a batch is acknowledged: the subscriber asks its BackoffManager how long to wait after it has
// committed each of them.
type ackWatch struct {
	sql.BackoffManager
	allHandled func() bool
	done       chan struct{} // closed when all events are handled and acknowledged
}

func newAckWatch(allHandled func() bool) *ackWatch {
	return &ackWatch{
		BackoffManager: sql.NewDefaultBackoffManager(time.Millisecond, time.Millisecond),
		allHandled:     allHandled,
		done:           make(chan struct{}),
	}
}

// HandleError implements sql.BackoffManager.
func (a *ackWatch) HandleError(logger watermill.LoggerAdapter, noMessage bool, err error) time.Duration {
	if err == nil && a.allHandled() {
		select {
		case <-a.done:
		default:
			close(a.done)
		}
	}
	if err != nil { fmt.Println("ERR", err) }
	return a.BackoffManager.HandleError(logger, noMessage, err)
}
