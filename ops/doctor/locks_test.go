package doctor_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// TestLockedTable locks a table for everybody, the doctor too.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "doorito")
	p.config = impatient
	hold(t, p.pool, `LOCK TABLE outbox_event IN ACCESS EXCLUSIVE MODE`)
	p.finds(t, "locks", doctor.Problem, `application "nightly report"`, "has had outbox_event locked (AccessExclusiveLock)", "pg_terminate_backend")
	p.finds(t, "relays", doctor.Note, "could not look: a table has been locked", "See the check locks.")
}

// TestWaitForLock has a session wait behind an ordinary reader, so that all others wait behind it.
func TestWaitForLock(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{Slots: 3})
	p.config = impatient
	release := hold(t, p.pool, `SELECT FROM outbox_parked`)
	done := make(chan error, 1)
	go func() {
		_, err := p.pool.Exec(t.Context(), `ALTER TABLE outbox_parked ADD COLUMN more text`)
		done <- err
	}()
	pgtest.AwaitBlocked(t, p.pool, 1)
	p.finds(t, "locks", doctor.Problem, "for outbox_parked, which process", `application "nightly report"`, "who comes later waits behind it")
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.isWell(t, "locks")
}
