package outboxtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
)

// DrainWithin is Drain with another bound.
func DrainWithin(t testing.TB, patience time.Duration, pool *pgxpool.Pool, target outbox.Target, to outbox.Publisher) []outbox.Message {
	t.Helper()
	return drain(t, patience, pool, target, to)
}
