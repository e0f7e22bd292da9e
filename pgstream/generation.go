package pgstream

// How a store notices that its subscription was altered, dropped, or dropped and made again.

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// generation is that of the definition by which this store reads.
func (s *Store) generation() int64 { return s.definition.Load().Generation }

// redefine reads the definition again and goes on under it. Pages and parked events that are out
// are settled as they are: their shards are taken anew, with a fence of the new generation, when
// nothing of them is out any more. What was read ahead is dropped. A cursor is a place in the log,
// whatever the filter: it is kept. The caller is the reader.
func (s *Store) redefine(ctx context.Context, db Querier) error {
	is, err := s.stream.findSubscription(ctx, db, s.config.Subscription, "")
	if errors.Is(err, ErrNoSubscription) {
		return &droppedError{s.config.Subscription}
	}
	if err != nil {
		return err
	}
	was := s.definition.Load()
	changes := was.changes(is)
	if is.Generation == was.Generation && len(changes) == 0 {
		return nil
	}
	s.sql.refilter(s.stream, s.shape, is.Filter)
	s.definition.Store(is)
	s.forget()
	s.mu.Lock()
	s.tendAt = time.Time{} // to say which generation it serves
	s.mu.Unlock()
	level, text := slog.LevelInfo, "the subscription was altered; going on under its new definition"
	if !is.CreatedAt.Equal(was.CreatedAt) {
		level, text = slog.LevelWarn, "the subscription was dropped and made again; serving the new one"
	}
	s.log.Log(ctx, level, text, "subscription", is.Name, "changed", strings.Join(changes, ", "), "generation", is.Generation)
	if s.config.Changed != nil {
		s.config.Changed(*was, *is)
	}
	return nil
}
