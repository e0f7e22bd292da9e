package pginbox_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

const (
	consumer = "billing"
	patience = time.Minute
)

var errEffect = errors.New("the effect failed")

// execute runs a statement of an effect in the handler's transaction.
type execute func(ctx context.Context, sql string, args ...any) error

// handler is a handler as the tests write it, for either kind of transaction.
type handler func(ctx context.Context, exec execute) error

// door is one of the two ways into the inbox.
type door struct {
	inbox *pginbox.Inbox
	pool  *pgxpool.Pool
	db    *sql.DB // nil for pgx
}

// openDoor opens the way called name, "pgx" or "sql".
func openDoor(name string, pool *pgxpool.Pool) (*door, error) {
	in, err := pginbox.New(pginbox.Config{})
	if err != nil {
		return nil, err
	}
	d := &door{inbox: in, pool: pool}
	if name == "sql" {
		d.db = stdlib.OpenDBFromPool(pool)
	}
	return d, nil
}

// deliver hands an event to the inbox.
func (d *door) deliver(ctx context.Context, event uuid.UUID, work handler) (ran bool, err error) {
	if d.db == nil {
		return d.inbox.Handle(ctx, d.pool, consumer, event, func(ctx context.Context, tx pgx.Tx) error {
			return work(ctx, func(ctx context.Context, sql string, args ...any) error {
				_, err := tx.Exec(ctx, sql, args...)
				return err
			})
		})
	}
	return d.inbox.HandleSQL(ctx, d.db, consumer, event, func(ctx context.Context, tx *sql.Tx) error {
		return work(ctx, func(ctx context.Context, sql string, args ...any) error {
			_, err := tx.ExecContext(ctx, sql, args...)
			return err
		})
	})
}

func (d *door) close() error {
	if d.db == nil {
		return nil
	}
	return d.db.Close()
}

// effect is two rows that belong together. The table lets any number of them in, so that
// none is hidden.
func effect(event uuid.UUID) handler {
	return func(ctx context.Context, exec execute) error {
		return effectWith(ctx, exec, event, func() {})
	}
}

func effectWith(ctx context.Context, exec execute, event uuid.UUID, between func()) error {
	if err := exec(ctx, `INSERT INTO effects VALUES ($1, 'first half')`, event.String()); err != nil {
		return err
	}
	between()
	return exec(ctx, `INSERT INTO effects VALUES ($1, 'second half')`, event.String())
}

// bench is a database with the inbox and the effects in it.
type bench struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url := pgtest.URL(t)
	b := &bench{t: t, url: url, pool: pgtest.Connect(t, url)}
	files, err := pginbox.Migrations(pginbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, b.pool, "", files)
	pgtest.Exec(t, b.pool, `CREATE TABLE effects (event_id uuid NOT NULL, part text NOT NULL)`)
	return b
}

// each runs a test through both doors, each on a database of its own.
func each(t *testing.T, test func(t *testing.T, b *bench, name string)) {
	t.Helper()
	for _, name := range []string{"pgx", "sql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t), name)
		})
	}
}

// door opens a door with some settings of the session, such as "lock_timeout=1s".
func (b *bench) door(name string, settings ...string) *door {
	b.t.Helper()
	return b.doorOn(name, pgtest.Connect(b.t, withSettings(b.url, settings...)))
}

func (b *bench) doorOn(name string, pool *pgxpool.Pool) *door {
	b.t.Helper()
	d, err := openDoor(name, pool)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := d.close(); err != nil {
			b.t.Error(err)
		}
	})
	return d
}

func withSettings(url string, settings ...string) string {
	if len(settings) == 0 {
		return url
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + strings.Join(settings, "&")
}

// deliver hands an event with its effect to the inbox, and fails unless it answers so.
func (b *bench) deliver(d *door, event uuid.UUID, wantRan bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if ran, err := d.deliver(ctx, event, effect(event)); ran != wantRan || err != nil {
		b.t.Fatalf("delivered: %t, %v; want %t", ran, err, wantRan)
	}
}

// want fails unless the event has so many whole effects and marks.
func (b *bench) want(event uuid.UUID, effects, marks int) {
	b.t.Helper()
	var first, second, marked int
	row := b.pool.QueryRow(b.t.Context(), `
SELECT count(*) FILTER (WHERE part = 'first half'), count(*) FILTER (WHERE part = 'second half'),
  (SELECT count(*) FROM outbox_inbox WHERE event_id = $1) FROM effects WHERE event_id = $1`, event)
	if err := row.Scan(&first, &second, &marked); err != nil {
		b.t.Fatal(err)
	}
	if first != effects || second != effects || marked != marks {
		b.t.Errorf("event %s: %d and %d halves of its effect and %d marks; want %d effects and %d marks",
			event, first, second, marked, effects, marks)
	}
}
