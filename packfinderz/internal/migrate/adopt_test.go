package migrate_test

import (
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"gorm.io/gorm"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

const (
	textEvents = `CREATE TABLE outbox_events (id uuid PRIMARY KEY, event_type text NOT NULL, aggregate_type varchar(40) NOT NULL,
		aggregate_id uuid NOT NULL, payload_json jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), published_at timestamptz,
		attempt_count bigint NOT NULL DEFAULT 0, last_error text);`
	textLetters = `CREATE TABLE outbox_dlq (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), event_id uuid NOT NULL, event_type text NOT NULL,
		aggregate_type text NOT NULL, aggregate_id uuid NOT NULL, payload_json jsonb NOT NULL, error_reason text NOT NULL,
		failed_at timestamptz NOT NULL DEFAULT now(), created_at timestamptz NOT NULL, attempt_count bigint NOT NULL, last_error text,
		retried_at timestamptz);`
)

// What somebody else has under a name of the outbox's is found before anything is made or noted. The error says what it is and what to
// do; when that is done, all goes through.
func TestRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	program := program(t)
	for name, c := range map[string]struct{ state, says, mend string }{
		"letters": {
			`CREATE TABLE outbox_dlq (id bigserial PRIMARY KEY, topic text)`,
			`table "outbox_dlq" has no column "event_id" for eventId`, `ALTER TABLE outbox_dlq RENAME TO old_dlq`,
		},
		"letters beside events that fit": {
			textEvents + `CREATE TABLE outbox_dlq (id uuid PRIMARY KEY, event_id uuid, error_reason text)`,
			`ALTER TABLE "outbox_dlq" RENAME TO`, `ALTER TABLE outbox_dlq RENAME TO old_dlq`,
		},
		"an enum": {
			`CREATE TYPE event_type_enum AS ENUM ('signup')`,
			`type "event_type_enum" is there already and has no value order_created`, `ALTER TYPE event_type_enum RENAME TO old_enum`,
		},
		"an enum beside text": {
			textEvents + `CREATE TYPE event_type_enum AS ENUM ('signup')`,
			`type "event_type_enum" is there already and has no value order_created`, `ALTER TYPE event_type_enum RENAME TO old_enum`,
		},
		"an enum of the letters": {
			`CREATE TYPE outbox_dlq_reason_enum AS ENUM ('max_attempts', 'oops')`,
			`type "outbox_dlq_reason_enum" is there already and has no value unknown_event_type`, `ALTER TYPE outbox_dlq_reason_enum RENAME TO old_enum`,
		},
		"a function": {
			`CREATE FUNCTION outbox_dlq_append_only() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			`ALTER FUNCTION "outbox_dlq_append_only"() RENAME`, `ALTER FUNCTION outbox_dlq_append_only() RENAME TO old_function`,
		},
		"a version table": {
			`CREATE TABLE outbox_events_packfinderz_goose (version text)`,
			`table outbox_events_packfinderz_goose, in which goose records applied migrations, is not goose's`,
			`ALTER TABLE outbox_events_packfinderz_goose RENAME TO old_goose`,
		},
		"the sample's version table": {
			`CREATE TABLE packfinderz_goose (version text)`,
			`table packfinderz_goose, in which goose records applied migrations, is not goose's`, `ALTER TABLE packfinderz_goose RENAME TO old_goose`,
		},
		"notes of a version that stopped half-way": {
			`CREATE TABLE outbox_dlq (id bigserial PRIMARY KEY, topic text)`, ``, `ALTER TABLE outbox_dlq RENAME TO old_dlq`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t)
			pool := testdb.Connect(t, url)
			testdb.Exec(t, pool, c.state)
			if c.says == "" {
				gooseUp(t, url, "outbox_events_packfinderz_goose", outboxOnly(t, "00001*", "00003*"))
				c.says = `table "outbox_dlq"`
			}
			tables := `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`
			before, n := shape(t, pool), backendtest.Count(t, pool, tables)
			err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler))
			if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("api migrate says %v", err)
			}
			if !strings.HasPrefix(name, "the sample's") {
				output, err := exec.CommandContext(t.Context(), program, "migrate", "up", "--layout", "packfinderz", "--adopt", "--from", url).CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(output), c.says) {
					t.Errorf("outbox migrate up --adopt says %s (%v)", output, err)
				}
			}
			if after := shape(t, pool); after != before || backendtest.Count(t, pool, tables) != n {
				t.Errorf("something was made:\n%s\nit was\n%s", after, before)
			}
			testdb.Exec(t, pool, c.mend)
			api(t, url)
			testdb.Exec(t, pool, event)
			adopt(t, program, url)
		})
	}
}

// Tables that have text where the outbox's have enums are kept, and everything works on them: emit, publish, the dead letters.
func TestTextInPlaceOfEnums(t *testing.T) {
	t.Parallel()
	program := program(t)
	const enums = `CREATE TYPE aggregate_type_enum AS ENUM ('ad', 'store', 'media', 'license', 'vendor_order', 'checkout_group', 'ledger_event', 'notification');`
	for name, state := range map[string]string{
		"events": textEvents, "both": textEvents + textLetters, "events and a type": textEvents + enums, "letters": textLetters,
	} {
		for _, first := range []string{"api", "program"} {
			t.Run(name+"/"+first, func(t *testing.T) {
				t.Parallel()
				url := testdb.URL(t)
				pool := testdb.Connect(t, url)
				testdb.Exec(t, pool, state)
				if first == "program" {
					adopt(t, program, url)
				}
				api(t, url)
				adopt(t, program, url)
				db := pftest.GORM(t, pool)
				events, err := outbox.NewService(outbox.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ad := payloads.AdActivated{}
				err = db.Transaction(func(tx *gorm.DB) error {
					_, err := events.Emit(tx, outbox.DomainEvent{AggregateID: pftest.AggregateOf(ad), Data: ad})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				giveUpAll(t, db)
				if n := backendtest.Count(t, pool, `SELECT count(*) FROM outbox_dlq WHERE event_type = 'ad_activated' AND error_reason = 'rejected'`); n != 1 {
					t.Errorf("%d dead letters, want 1", n)
				}
			})
		}
	}
}

// giveUpAll is a publisher whose one event Pub/Sub rejects.
func giveUpAll(t *testing.T, db *gorm.DB) {
	t.Helper()
	repository, err := outbox.NewRepository(t.Context(), db, outbox.RepositoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer repository.Close()
	fetched, err := repository.FetchUnpublishedForPublish(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	defer fetched.Rollback()
	if len(fetched.Events()) != 1 {
		t.Fatalf("%d events were fetched", len(fetched.Events()))
	}
	if err := fetched.MarkFailed(fetched.Events()[0].ID, engine.Rejected(errors.New("no"))); err != nil {
		t.Fatal(err)
	}
	if err := fetched.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
