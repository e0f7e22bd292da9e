package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/internal/view"
)

const (
	// replayBatch is the number of events that are published at once.
	replayBatch = 100
	// replayRead is the number of events that are read at once.
	replayRead = 1000
	// replayPoll is the time after which a replay with a rate checks whether it may go on.
	replayPoll = 50 * time.Millisecond
)

// Replay publishes delivered events again through a relay of its own, so that failures are waited out and order is
// kept as in any relay. It changes no rows.
func (t *Table) Replay(ctx context.Context, f *view.Filter, replay view.Replay) (events int64, err error) {
	store := &replayStore{table: t, filter: f, replay: &replay, began: time.Now()}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: replay.Publisher, DefaultTopic: replay.DefaultTopic, Concurrency: 1, BatchSize: replayBatch,
		Poll:   replayPoll,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	store.fail = stop
	err = relay.Drain(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = cause
	}
	if err == nil && store.dead > 0 {
		err = fmt.Errorf("outbox: %d of the events could not be published again; the first: %s", store.dead, store.deadError)
	}
	return store.published, err
}
