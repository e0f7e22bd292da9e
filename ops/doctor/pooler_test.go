package doctor_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// TestPooler goes through a real PgBouncer, in transaction and in session mode.
func TestPooler(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	direct := pgtest.Connect(t, address)
	modkit, stream := newTable(t, direct, "modkit"), newStream(t, direct, pgstream.Shape{})
	const servers = 4
	through := pgbouncer.Start(t, address, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: servers})
	transaction := pgtest.Connect(t, through)
	modkit.pool, stream.pool = transaction, transaction
	modkit.finds(t, "notifications", doctor.Warning, "notifications do not arrive", "--notify=false")
	stream.finds(t, "notifications", doctor.Warning, "relays find new events only when they poll", "past the pooler")
	pgbouncer.AssertNoTraces(t, address, through, servers)
	modkit.pool = pgtest.Connect(t, pgbouncer.Start(t, address, pgbouncer.Config{Mode: pgbouncer.Session}))
	modkit.isWell(t, "notifications")
}
