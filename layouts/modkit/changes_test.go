package modkit_test

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// change is a change of a row, as a trigger saw it, whatever code made it. Times are in microseconds, by the
// database's clock; zero is NULL.
type change struct {
	seq int64
	id  uuid.UUID
	by  string
	// at is now() of the transaction; ended is when the row was changed.
	at, ended int64
	old, new  snapshot
	// altered is whether an immutable column changed.
	altered bool
}

// snapshot is the mutable part of a row. The status of a missing row is empty.
type snapshot struct {
	status     string
	attempts   int
	owner      string
	until, due int64
	lastError  string
	updated    int64
}

func (c *change) String() string {
	return fmt.Sprintf("%s, by %s at %d: %+v became %+v, altered otherwise: %t", c.id, c.by, c.at, c.old, c.new, c.altered)
}

func (c *change) byOwner() bool   { return c.old.owner == c.by }
func (c *change) ranOut() bool    { return c.old.until < c.at }
func (c *change) freed() bool     { return c.new.owner == "" && c.new.until == 0 }
func (c *change) sameDue() bool   { return c.new.due == c.old.due }
func (c *change) sameError() bool { return c.new.lastError == c.old.lastError }

// sameTry reports whether neither attempts nor error changed.
func (c *change) sameTry() bool { return c.new.attempts == c.old.attempts && c.sameError() }

// onlyTimes reports whether only the lease's end or the due time changed, to an earlier time.
func (c *change) onlyTimes() bool {
	return c.sameTry() && c.new.owner == c.old.owner && c.new.updated == c.old.updated && c.new.until <= c.old.until && c.new.due <= c.old.due
}

// watch makes the database record every change of a row.
func (b *bed) watch() {
	b.Helper()
	pgtest.Exec(b, b.pool, `
		CREATE TABLE changes (
			seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, by text, at timestamptz, ended timestamptz,
			old modkit_outbox_events, new modkit_outbox_events
		);
		CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO changes (by, at, ended, old, new)
			VALUES (current_setting('application_name'), now(), clock_timestamp(), OLD, NEW);
			RETURN NULL;
		END $$;
		CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON modkit_outbox_events
			FOR EACH ROW EXECUTE FUNCTION note_change()`)
}

// as returns a pool whose changes carry a name.
func (b *bed) as(name string) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		b.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.MaxConns = 3
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// changesSQL reads the changes recorded after a number.
func changesSQL() string {
	micros := func(value string) string {
		return fmt.Sprintf("coalesce((extract(epoch FROM %s) * 1000000)::bigint, 0)", value)
	}
	side := func(row string) string {
		return fmt.Sprintf(`coalesce((%[1]s).status, ''), coalesce((%[1]s).attempts, 0), coalesce((%[1]s).locked_by::text, ''),
			%[2]s, %[3]s, coalesce((%[1]s).last_error, ''), %[4]s`,
			row, micros("("+row+").locked_until"), micros("("+row+").next_attempt_at"), micros("("+row+").updated_at"))
	}
	const mutable = `'{status,attempts,locked_by,locked_until,next_attempt_at,last_error,updated_at}'::text[]`
	return fmt.Sprintf(`SELECT seq, coalesce((new).id, (old).id), by, %s, %s, %s, %s,
		(old).id IS NOT NULL AND to_jsonb(old) - %[5]s IS DISTINCT FROM to_jsonb(new) - %[5]s
		FROM changes WHERE seq > $1 ORDER BY seq`, micros("at"), micros("ended"), side("old"), side("new"), mutable)
}

// fataler is a test, or a check of rapid.
type fataler interface {
	Fatalf(format string, args ...any)
}

// changes returns the changes recorded after a number.
func (b *bed) changes(f fataler, after int64) (list []change) {
	rows, err := b.pool.Query(b.Context(), changesSQL(), after)
	if err != nil {
		f.Fatalf("read the changes: %v", err)
	}
	var c change
	dests := []any{&c.seq, &c.id, &c.by, &c.at, &c.ended}
	for _, s := range []*snapshot{&c.old, &c.new} {
		dests = append(dests, &s.status, &s.attempts, &s.owner, &s.until, &s.due, &s.lastError, &s.updated)
	}
	_, err = pgx.ForEachRow(rows, append(dests, &c.altered), func() error {
		list = append(list, c)
		return nil
	})
	if err != nil {
		f.Fatalf("read the changes: %v", err)
	}
	return list
}
