package tablecheck_test

import (
	"fmt"
	"testing"

	"github.com/packfinderz/outbox/internal/tablecheck"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// TestExisting judges what is there, and assumes that what is not will be as the layout says.
func TestExisting(t *testing.T) {
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
			list, err := tablecheck.Existing(t.Context(), pool, packfinderz.Layout())
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
