package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

const (
	// replayBatch is the number of events that are published at once.
	replayBatch = 100
	// replayRead is the number of events that are read at once.
	replayRead = 1000
	// replayPoll is the time after which a replay with a rate checks whether it may go on.
	replayPoll = 50 * time.Millisecond
)

// Replay publishes delivered events again through its own relay, which waits out failures and keeps the order like
// any relay. It changes no rows.
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

// replayStore hands the delivered events of a table to a relay, in order, one batch at a time.
type replayStore struct {
	table  *Table
	filter *view.Filter
	replay *view.Replay
	began  time.Time
	// fail ends the replay: unlike a broker, the database is not waited for.
	fail context.CancelCauseFunc

	mu sync.Mutex
	// pending are events that were read and not yet published, in order.
	pending []outbox.Message
	walk    *walk
	from    *view.Position
	read    bool // to the end
	handed  int64
	// published counts the delivered events.
	published int64
	// dead counts the events that the destination refused for good.
	dead      int64
	deadError string
}

var (
	_ outbox.Store = (*replayStore)(nil)
	_ outbox.Idler = (*replayStore)(nil)
)

// Traits describes a store that keeps order, with one batch at a time.
func (s *replayStore) Traits() outbox.Traits {
	return outbox.Traits{Name: "replay of " + s.table.layout.Table, Lease: time.Minute, OpenBatches: 1, InOrder: true}
}

func (s *replayStore) Sweep(context.Context) (int64, error)               { return 0, nil }
func (s *replayStore) Purge(context.Context, outbox.Purge) (int64, error) { return 0, nil }

// Stats is never called: Idle says what is left.
func (s *replayStore) Stats(context.Context) (outbox.Stats, error) { return outbox.Stats{}, nil }

func (s *replayStore) Idle(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read && len(s.pending) == 0, nil
}

// Claim takes the next events when the rate allows.
func (s *replayStore) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) == 0 && !s.read {
		if err := s.readMore(ctx); err != nil {
			s.fail(err)
			return nil, err
		}
	}
	n := min(request.Limit, len(s.pending))
	// Nothing overtakes an event that waits for its next attempt: a replay keeps the order.
	if waits := slices.IndexFunc(s.pending[:n], func(m outbox.Message) bool { return slices.Contains(request.Except, m.ID) }); waits >= 0 {
		n = waits
	}
	if n == 0 {
		return &replayBatchOf{store: s}, nil // the relay asks again
	}
	if rate := s.replay.Rate; rate > 0 {
		n = min(n, max(1, rate/10))
		due := s.began.Add(time.Duration(float64(s.handed) / float64(rate) * float64(time.Second)))
		if time.Until(due) > 0 {
			return &replayBatchOf{store: s}, nil // the relay asks again
		}
	}
	s.handed += int64(n)
	return &replayBatchOf{store: s, messages: s.pending[:n:n]}, nil
}

func (s *replayStore) readMore(ctx context.Context) error {
	r := request{filter: s.filter, ascending: true, from: s.from, want: replayRead, limit: query.ScanLimit, whole: true}
	err := pgx.BeginTxFunc(ctx, s.table.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		found, err := s.table.stepIn(ctx, tx, &s.walk, &r)
		if err != nil {
			return err
		}
		s.from, s.read = r.from, r.from == nil
		for i := range found.events {
			event := &found.events[i]
			s.pending = append(s.pending, outbox.Message{Event: event.Event, CreatedAt: event.CreatedAt, Attempt: 1, ReplayedAt: s.began})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read delivered events: %w", err)
	}
	return nil
}

// settle removes what was published, and keeps the rest in place.
func (s *replayStore) settle(ctx context.Context, messages []outbox.Message, outcomes []outbox.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []uuid.UUID
	var left []outbox.Message
	for i := range messages {
		switch outcomes[i].Kind {
		case outbox.Delivered:
			ids = append(ids, messages[i].ID)
			continue
		case outbox.Died:
			s.dead++
			if s.deadError == "" {
				s.deadError = fmt.Sprintf("%s: %s", messages[i].ID, outcomes[i].Error)
			}
			continue
		case outbox.Failed:
			messages[i].Attempt++
		case outbox.Released:
		}
		left = append(left, messages[i])
	}
	s.pending = append(left, s.pending[len(messages):]...)
	s.handed -= int64(len(left))
	s.published += int64(len(ids))
	if s.replay.Progress != nil {
		s.replay.Progress(s.published)
	}
	if len(ids) == 0 {
		return nil
	}
	err := s.replay.Note(ctx, nil, ids)
	if err != nil {
		s.fail(err) // publish nothing that the log cannot record
	}
	return err
}

type replayBatchOf struct {
	store    *replayStore
	messages []outbox.Message
}

func (b *replayBatchOf) Messages() []outbox.Message  { return b.messages }
func (b *replayBatchOf) Exhausted() []outbox.Message { return nil }
func (b *replayBatchOf) Reclaimed() int              { return 0 }
func (b *replayBatchOf) Renew(context.Context) error { return nil } // nobody else has these events
func (b *replayBatchOf) Abandon()                    {}

func (b *replayBatchOf) Settle(ctx context.Context, outcomes []outbox.Outcome) ([]uuid.UUID, error) {
	if len(outcomes) != len(b.messages) {
		return nil, fmt.Errorf("outbox: %d outcomes for %d messages", len(outcomes), len(b.messages))
	}
	return nil, b.store.settle(ctx, b.messages, outcomes)
}
