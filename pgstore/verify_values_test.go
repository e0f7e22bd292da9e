package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestVerifyValues finds an enum that has not all values that the layout lets emit write.
func TestVerifyValues(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	pgtest.Exec(t, h.pool, textForEnums+`DROP TYPE event_type_enum; CREATE TYPE event_type_enum AS ENUM ('ad_paused');
		ALTER TABLE outbox_events ALTER event_type TYPE event_type_enum USING event_type::event_type_enum`)
	if err := pgstore.Verify(t.Context(), h.pool, h.layout); err != nil {
		t.Errorf("a relay reads any value: %v", err)
	}
	const want = `has column "event_type" for type as event_type_enum: it has no value order_created, order_state_changed, ` +
		`line_item_state_changed, license_status_changed, media_uploaded, …; run outbox migrate up, or ALTER TYPE … ADD VALUE`
	if err := pgstore.VerifyEmit(t.Context(), h.pool, h.layout); !errors.Is(err, pgstore.ErrMismatch) || !strings.Contains(err.Error(), want) {
		t.Errorf("the verdict is %v", err)
	}
}
