package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/pgstore"
)

// TestExistingMismatches judges what is there; what is not is taken to be as the layout says.
func TestExistingMismatches(t *testing.T) {
	t.Parallel()
	const letters = `CREATE TABLE outbox_dlq (id uuid PRIMARY KEY, event_id uuid, event_type %s, aggregate_type text, aggregate_id uuid,
		payload_json jsonb, error_reason text, failed_at timestamptz, created_at timestamptz, attempt_count %s, last_error text, retried_at timestamptz)`
	for name, c := range map[string]struct{ tables, want string }{
		"none":                     {``, `[]`},
		"other letters":            {`CREATE TABLE outbox_dlq (id uuid)`, `11 of them`},
		"letters that fit":         {fmt.Sprintf(letters, "text", "bigint"), `[]`},
		"letters with a uuid type": {fmt.Sprintf(letters, "uuid", "integer"), `[table "outbox_dlq" has column "event_type" for type as uuid: event_type_enum is needed, as in the outbox table]`},
		"letters with a text count": {fmt.Sprintf(letters, "text", "jsonb"),
			`[table "outbox_dlq" has column "attempt_count" for attempts as jsonb: integer is needed, as in the outbox table]`},
		"letters that have a short reason": {fmt.Sprintf(letters, "text", "integer") + `; ALTER TABLE outbox_dlq ALTER error_reason TYPE varchar(5)`,
			`[table "outbox_dlq" has column "error_reason" for reason as character varying(5): reason "max_attempts" has 12 characters]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			pgtest.Exec(t, pool, c.tables)
			list, err := pgstore.ExistingMismatches(t.Context(), pool, packfinderz.Layout())
			if err != nil {
				t.Fatal(err)
			}
			problems := []string{}
			for _, m := range list {
				problems = append(problems, m.Problem)
			}
			if got := fmt.Sprint(problems); got != c.want && fmt.Sprintf("%d of them", len(list)) != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
		})
	}
}

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
