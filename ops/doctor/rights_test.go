package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// A role that relays with rights on no more than the columns it writes has all rights, and works with them. Each that is taken away is
// told, with the GRANT that gives it back.
func TestRights(t *testing.T) {
	t.Parallel()
	admin := pgtest.Pool(t)
	p := newTable(t, admin, "packfinderz")
	p.pool = pgtest.AsRole(t, admin)
	role := p.pool.Config().ConnConfig.RuntimeParams["role"]
	for _, right := range []string{
		`SELECT ON outbox_events`, `UPDATE (published_at, attempt_count, last_error) ON outbox_events`, `SELECT ON outbox_dlq`,
		`INSERT (id, event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, failed_at, created_at, attempt_count, last_error)
			ON outbox_dlq`,
	} {
		err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UseRelay)
		if !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "may not relay: it lacks "+right[:6]) ||
			!strings.Contains(err.Error(), "GRANT "+right[:6]) || !strings.Contains(err.Error(), "TO "+role) {
			t.Errorf("without %s: %v", right, err)
		}
		pgtest.Exec(t, admin, `GRANT `+right+` TO `+role)
	}
	if err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UseRelay); err != nil {
		t.Error(err)
	}
	err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UsePurge)
	if !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "may not purge: it lacks DELETE on") {
		t.Errorf("to purge: %v", err)
	}
	p.config.For = doctor.UseRelay
	p.finds(t, "privileges", doctor.OK, "may relay")
	store, err := pgstore.New(p.pool, packfinderz.Layout(), pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, admin, insertPackfinderz)
	batch := claim(t, store)
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}}); err != nil {
		t.Error(err)
	}

	pgtest.Exec(t, admin, `REVOKE UPDATE (attempt_count) ON outbox_events FROM `+role)
	if err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UseRelay); !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "it lacks UPDATE on") {
		t.Errorf("without one of the columns: %v", err)
	}
	if err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UseEmit); !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "may not emit: it lacks INSERT on") {
		t.Errorf("to emit: %v", err)
	}
	pgtest.Exec(t, admin, `ALTER TABLE outbox_dlq RENAME TO away`)
	if err := doctor.Rights(t.Context(), p.on(t, p.pool), doctor.UseRelay); !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), `sees no table "outbox_dlq"`) {
		t.Errorf("without a table: %v", err)
	}
}

// The stream's rights are asked for slot by slot.
func TestRightsOfStream(t *testing.T) {
	t.Parallel()
	admin := pgtest.Pool(t)
	p := newStream(t, admin, pgstream.Shape{})
	if err := doctor.Rights(t.Context(), p.on(t, admin), doctor.UseRelay); err != nil {
		t.Error(err)
	}
	err := doctor.Rights(t.Context(), p.on(t, pgtest.AsRole(t, admin)), doctor.UseRelay)
	if !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "TRUNCATE") {
		t.Errorf("without rights: %v", err)
	}
}

// TestRightsHidden has a policy decide which rows a relay sees. Whoever only emits need not see any.
func TestRightsHidden(t *testing.T) {
	t.Parallel()
	admin := pgtest.Pool(t)
	p := newTable(t, admin, "doorito")
	pgtest.Exec(t, admin, `GRANT ALL ON outbox_event TO PUBLIC; ALTER TABLE outbox_event ENABLE ROW LEVEL SECURITY`)
	role := pgtest.AsRole(t, admin)
	if err := doctor.Rights(t.Context(), p.on(t, role), doctor.UseRelay); !errors.Is(err, doctor.ErrRights) || !strings.Contains(err.Error(), "BYPASSRLS") {
		t.Errorf("a relay that sees nothing: %v", err)
	}
	if err := doctor.Rights(t.Context(), p.on(t, role), doctor.UseEmit); err != nil {
		t.Error(err)
	}
	if err := doctor.Rights(t.Context(), p.on(t, admin), doctor.UseRelay); err != nil {
		t.Error(err)
	}
}
