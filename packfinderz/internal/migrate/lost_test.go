package migrate_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

// Tables that were dropped by hand are missed, and the statements that the error names bring them back.
func TestDroppedByHand(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	api(t, url)
	want := shape(t, testdb.Connect(t, url))
	for drop, says := range map[string]string{
		`DROP TABLE outbox_events`:                                            `the migrations 1, 3 as applied, but what they created or added to is gone: table "outbox_events"`,
		`DROP TABLE outbox_dlq`:                                               `the migrations 2 as applied`,
		`DROP TABLE outbox_events, outbox_dlq`:                                `the migrations 1, 2, 3 as applied`,
		`DROP TABLE outbox_events; DROP FUNCTION outbox_events_append_only()`: `function "outbox_events_append_only"`,
		`DROP TABLE notifications`:                                            `packfinderz_goose records the migrations 2 as applied`,
		`DROP TABLE stores CASCADE`:                                           `DROP TABLE "licenses"; DELETE FROM packfinderz_goose WHERE version_id IN (1)`,
		`DROP TABLE licenses, notifications`:                                  `DROP TABLE "stores"; DELETE FROM packfinderz_goose WHERE version_id IN (1, 2)`,
		`DROP TABLE outbox_dlq; DROP TYPE outbox_dlq_reason_enum`:             `type "outbox_dlq_reason_enum"`,
	} {
		t.Run(drop, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t)
			api(t, url)
			pool := testdb.Connect(t, url)
			testdb.Exec(t, pool, drop)
			err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler))
			if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), says) {
				t.Fatalf("api migrate says %v", err)
			}
			_, advice, _ := strings.Cut(err.Error(), "empty, run ")
			advice, _, found := strings.Cut(advice, "; then migrate again")
			if !found {
				t.Fatalf("%v gives no advice", err)
			}
			testdb.Exec(t, pool, advice)
			api(t, url)
			if got := shape(t, pool); got != want {
				t.Errorf("the tables are\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// An index that somebody replaced is no reason to stop a release.
func TestIndexOfAnotherName(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	api(t, url)
	testdb.Exec(t, testdb.Connect(t, url), `ALTER INDEX idx_outbox_events_claim RENAME TO mine`)
	api(t, url)
}
