package view

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// Step changes one batch of events in a transaction. It returns the events that it changed, and whether there may be
// more.
type Step func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error)

// Replay is what a half needs to know of a replay.
type Replay struct {
	// Rate limits the events per second; zero is no limit.
	Rate int
	// Publisher and DefaultTopic are used unless the outbox's relay replays.
	Publisher    outbox.Publisher
	DefaultTopic string
	// Note records a batch in the audit log: in the transaction that changes something, or alone if tx is nil.
	Note func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error
	// Progress is called with the number of events so far.
	Progress func(done int64)
}
