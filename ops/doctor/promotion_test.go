package doctor_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// TestPromotion promotes a real standby, and has everything be known of it that can be.
func TestPromotion(t *testing.T) {
	t.Parallel()
	primary := pgtest.Server(t, nil)
	newStream(t, pgtest.Connect(t, primary.URL("postgres")), pgstream.Shape{})
	standby := pgtest.Standby(t, primary, nil)
	address := pgserver.HostsURL("postgres", primary, standby)
	pool := pgtest.Connect(t, address)
	p := &patient{pool: pool, place: ops.Place{Stream: &pgstream.Stream{}}}
	store, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	claims := func() bool {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 1})
		if err != nil {
			return false
		}
		batch.Abandon()
		return true
	}
	if !claims() {
		t.Fatal("nothing can be claimed from the primary")
	}
	p.isWell(t, "promotion")

	own := pgtest.Connect(t, standby.URL("postgres"))
	awaitTrue(t, own, `SELECT EXISTS (SELECT FROM outbox_settings WHERE timeline = 1)`)
	if err := primary.Halt(t.Context(), pgserver.Immediate); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, own, `SELECT pg_promote()`)
	pool.Reset()
	p.finds(t, "promotion", doctor.Warning, "(timeline 1 to 2)", "no relay has connected since", "Start the relays")
	await.Until(t, "the relay to find the promoted server", claims)
	p.finds(t, "promotion", doctor.Note, "(timeline 1 to 2)", "every event that 1 relay had delivered is here")

	pgtest.Exec(t, pool, `UPDATE outbox_settings SET promoted_orphaned = 3, promoted_repeated = 1, promoted_more = true`)
	p.finds(t, "promotion", doctor.Warning, "1 relay (it remembers the last 65,536 only) had delivered at least 3 events that this server does not have", "1 event that it has not settled")
	pgtest.Exec(t, pool, `UPDATE outbox_settings SET promoted_relays = 0`)
	p.finds(t, "promotion", doctor.Warning, "no relay outlived it")
	pgtest.Exec(t, pool, `UPDATE outbox_settings SET promoted_at = now() - interval '8 days'`)
	p.isWell(t, "promotion")
}
