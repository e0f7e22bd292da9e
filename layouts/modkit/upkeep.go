package modkit

import (
	"context"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Stats counts the module's messages that are waiting, held and dead. What is dead was committed
// and not delivered: somebody has to look.
func (m *Module) Stats(ctx context.Context) (outbox.Stats, error) {
	store, err := m.store(ClaimCfg{})
	if err != nil {
		return outbox.Stats{}, err
	}
	return store.Stats(ctx)
}

// Retry brings dead messages of the module's back: no attempts counted, due now, the same id. It
// returns those that were dead. A person decides it; nothing is retried by itself.
func (m *Module) Retry(ctx context.Context, ids ...uuid.UUID) ([]uuid.UUID, error) {
	store, err := m.store(ClaimCfg{})
	if err != nil {
		return nil, err
	}
	return store.Retry(ctx, ids...)
}

// Sweep makes messages dead whose lease has run out on the last attempt, and returns how many.
// Claims do the same for what they meet; Sweep is for a module that claims nothing.
func (m *Module) Sweep(ctx context.Context) (int64, error) {
	store, err := m.store(ClaimCfg{})
	if err != nil {
		return 0, err
	}
	return store.Sweep(ctx)
}

// Purge deletes the module's delivered messages that are older than a retention, in small steps,
// and nothing else. It returns how many. Dead messages stay in the table until somebody retries
// them: a DeadLetterRetention is refused.
func (m *Module) Purge(ctx context.Context, purge outbox.Purge) (int64, error) {
	store, err := m.store(ClaimCfg{})
	if err != nil {
		return 0, err
	}
	return store.Purge(ctx, purge)
}
