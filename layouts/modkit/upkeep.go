package modkit

import (
	"context"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Stats counts the module's messages that wait, are held, or are dead. A person has to look at dead ones: they were
// committed but not delivered.
func (m *Module) Stats(ctx context.Context) (outbox.Stats, error) {
	return m.own.Stats(ctx)
}

// Retry makes dead messages of the module due again, with the same id and no attempts counted. It returns those
// that were dead. It is for a person to call; nothing is retried by itself.
func (m *Module) Retry(ctx context.Context, ids ...uuid.UUID) ([]uuid.UUID, error) {
	return m.own.Retry(ctx, ids...)
}

// Sweep moves messages to dead whose lease ran out on the last attempt, and returns how many. Claims do the same
// for messages they find; Sweep is for a module that claims nothing.
func (m *Module) Sweep(ctx context.Context) (int64, error) {
	return m.own.Sweep(ctx)
}

// Purge deletes only the module's delivered messages older than the retention, in small steps, and returns how
// many. Dead messages stay until a person retries them: a DeadLetterRetention is refused.
func (m *Module) Purge(ctx context.Context, purge outbox.Purge) (int64, error) {
	return m.own.Purge(ctx, purge)
}
