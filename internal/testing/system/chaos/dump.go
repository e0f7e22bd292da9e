//go:build unix

package chaos

// A pg_dump that stands still with its locks.

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// dump is a backup under way.
type dump interface {
	// stands fails the test if the dump has ended.
	stands(r *run)
	// end lets it go on to its end.
	end(r *run)
}

// startDump starts a pg_dump that nobody reads: when it has filled the pipe it stands still, with all its locks. On a
// version of PostgreSQL whose pg_dump is not here a session takes the same locks.
func (r *run) startDump() dump {
	r.Helper()
	program, err := pgserver.Program("pg_dump")
	if errors.Is(err, pgserver.ErrNoProgram) && pgserver.Version() != "" {
		r.Logf("there is no pg_dump for PostgreSQL %s here: a session stands in for it", pgserver.Version())
		return r.startSession()
	}
	r.check(err)
	from, to, err := os.Pipe()
	r.check(err)
	d := &dumpProcess{from: from, Process: process.Start(r.T, r.file("pg_dump.log"), to, program, "--dbname", r.url)}
	r.check(to.Close())
	return d
}

// dumpProcess is the program itself.
type dumpProcess struct {
	*process.Process
	from *os.File // what it writes, to be read
}

func (d *dumpProcess) stands(r *run) {
	r.Helper()
	if d.Ended() {
		r.Fatalf("pg_dump did not wait to be read\n%s", d.Tail())
	}
}

func (d *dumpProcess) end(r *run) {
	r.Helper()
	_, err := io.Copy(io.Discard, d.from)
	r.check(err)
	r.check(d.from.Close())
	d.MustSucceed(r.T)
}

// dumpSession does what pg_dump does before it reads: one snapshot, and a lock on every table.
type dumpSession struct{ conn *pgx.Conn }

func (r *run) startSession() *dumpSession {
	r.Helper()
	config, err := pgx.ParseConfig(r.url)
	r.check(err)
	config.RuntimeParams["application_name"] = "pg_dump"
	conn, err := pgx.ConnectConfig(r.Context(), config)
	r.check(err)
	r.Cleanup(func() { _ = conn.Close(context.Background()) }) // it is closed already, unless the test failed
	_, err = conn.Exec(r.Context(), `
		BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		DO $$ DECLARE name regclass; BEGIN
			FOR name IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace LOOP
				EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', name);
			END LOOP;
		END $$`)
	r.check(err)
	return &dumpSession{conn}
}

func (d *dumpSession) stands(r *run) {
	r.Helper()
	_, err := d.conn.Exec(r.Context(), `SELECT count(*) FROM outbox_settings`)
	r.check(err)
}

func (d *dumpSession) end(r *run) {
	r.Helper()
	_, err := d.conn.Exec(r.Context(), `COMMIT`)
	r.check(errors.Join(err, d.conn.Close(r.Context())))
}
