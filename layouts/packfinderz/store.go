package packfinderz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// Store offers the calls of the PackFinderz contract on the relay's store: fetch rows under locks, mark each,
// commit. It is safe for concurrent use.
type Store struct {
	store *pgstore.Store

	mu   sync.Mutex
	open map[*Fetched]bool
}

// NewStore returns a store for a layout made by Layout.
func NewStore(pool *pgxpool.Pool, layout layouts.Layout, config pgstore.Config) (*Store, error) {
	store, err := pgstore.New(pool, layout, config)
	if err != nil {
		return nil, err
	}
	return &Store{store: store, open: make(map[*Fetched]bool)}, nil
}

// Close rolls back the rows that are still fetched. Their owners may be at work.
func (s *Store) Close() {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, f := range open {
		f.Rollback()
	}
}

// Fetched are rows locked by their own transaction until Commit or Rollback.
type Fetched struct {
	store  *Store
	batch  outbox.Batch
	events []outbox.Message
	places map[uuid.UUID]int

	mu       sync.Mutex
	outcomes []outbox.Outcome
	ended    bool
}

// errEnded is returned after Commit or Rollback.
var errEnded = errors.New("the rows are committed or rolled back already")

// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, and skips rows that others have
// locked. Call Commit or Rollback afterwards.
func (s *Store) FetchUnpublishedForPublish(ctx context.Context, limit int) (*Fetched, error) {
	batch, err := s.store.Claim(ctx, outbox.ClaimRequest{Limit: limit})
	if err != nil {
		return nil, err
	}
	f := &Fetched{
		store: s, batch: batch, places: make(map[uuid.UUID]int, len(batch.Messages())), outcomes: make([]outbox.Outcome, len(batch.Messages())),
	}
	for i, message := range batch.Messages() {
		if message.Invalid != nil { // Commit moves it to the dead-letter table
			f.outcomes[i] = outbox.InvalidRow(message.Invalid)
			continue
		}
		f.places[message.ID] = i
		f.events = append(f.events, message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[f] = true
	return f, nil
}

// Events returns the fetched rows, except for those that cannot be read as an event.
func (f *Fetched) Events() []outbox.Message { return f.events }

// MarkPublished records that Pub/Sub has acknowledged the event.
func (f *Fetched) MarkPublished(id uuid.UUID) error {
	return f.mark(id, outbox.Outcome{Kind: outbox.Delivered})
}

// MarkFailed records a failed attempt and its error. The event is dead, with a row in the dead-letter table, if
// this was the last attempt or the error is terminal.
func (f *Fetched) MarkFailed(id uuid.UUID, cause error) error {
	if cause == nil {
		return fmt.Errorf("outbox: event %s cannot be marked as failed without an error", id)
	}
	var outcome outbox.Outcome
	if place, ok := f.places[id]; ok { // otherwise mark refuses it
		message := &f.batch.Messages()[place]
		outcome = outbox.FailedAttempt(message.Attempt, message.MaxAttempts, cause, 0) // the table has no due times
	}
	return f.mark(id, outcome)
}

func (f *Fetched) mark(id uuid.UUID, outcome outbox.Outcome) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return fmt.Errorf("outbox: event %s cannot be marked: %w", id, errEnded)
	}
	place, ok := f.places[id]
	if !ok {
		return fmt.Errorf("outbox: event %s is not among the fetched rows", id)
	}
	f.outcomes[place] = outcome
	return nil
}

// Commit writes the marks. Rows without one stay as they were.
func (f *Fetched) Commit(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return fmt.Errorf("outbox: commit the marks: %w", errEnded)
	}
	defer f.end()
	if len(f.outcomes) == 0 {
		return nil
	}
	_, err := f.batch.Settle(ctx, f.outcomes)
	return err
}

// Rollback frees the rows and drops the marks. It is a no-op after Commit.
func (f *Fetched) Rollback() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

func (f *Fetched) end() {
	f.ended = true
	f.batch.Abandon()
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	delete(f.store.open, f)
}
