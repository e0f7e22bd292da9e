package migrate_test

import (
	"slices"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
	"github.com/packfinderz/outbox/pgstore"
)

// What the backend has besides the contract's values is added to the database, once, whatever it is called.
func TestAddValues(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	layout := registry.Layout()
	layout.Columns.Type.Values = append(layout.Columns.Type.Values, "voucher_printed", "it's odd")
	layout.Columns.AggregateType.Values = append(layout.Columns.AggregateType.Values, "coupon")
	if err := pgstore.VerifyEmit(t.Context(), pool, layout); err == nil {
		t.Error("a table that lacks values fits")
	}
	for _, want := range [][]string{{"voucher_printed", "it's odd", "coupon"}, nil} {
		if added, err := migrate.AddValues(t.Context(), pool, layout); err != nil || !slices.Equal(added, want) {
			t.Errorf("added %q (%v), want %q", added, err, want)
		}
		if err := pgstore.VerifyEmit(t.Context(), pool, layout); err != nil {
			t.Error(err)
		}
	}
	testdb.Exec(t, pool, `SELECT 'it''s odd'::event_type_enum, 'coupon'::aggregate_type_enum`)
}
