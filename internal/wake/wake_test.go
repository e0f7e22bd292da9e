package wake_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/wake"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestTableMadeAnew re-makes the table under a listener, as pg_restore --clean does: the channel is another
// one then.
func TestTableMadeAnew(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, `CREATE TABLE events ()`)
	ctx, stop := context.WithCancel(t.Context())
	var missed, before, after atomic.Bool
	ended := make(chan error, 1)
	go func() {
		ended <- wake.ListenAndLook(ctx, pool, "events", 10*time.Millisecond, func(about string) {
			switch about {
			case wake.Missed:
				missed.Store(true)
			case "before":
				before.Store(true)
			case "after":
				after.Store(true)
			}
		})
	}()
	await.Until(t, "a listener", missed.Load)
	notify := func(about string) {
		t.Helper()
		if err := wake.Send(ctx, pool, "events", about); err != nil {
			t.Fatal(err)
		}
	}
	notify("before")
	await.Until(t, "a notification", before.Load)

	missed.Store(false)
	pgtest.Exec(t, pool, `DROP TABLE events`)
	pgtest.Exec(t, pool, `CREATE TABLE events ()`)
	await.Until(t, "a listener to the new table", missed.Load)
	// The first may come before the listener knows the new table.
	await.Until(t, "a notification of the new table", func() bool {
		notify("after")
		return after.Load()
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
