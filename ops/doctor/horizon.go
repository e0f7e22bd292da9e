package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Vacuum removes a dead row only when nobody can see it any more. Those who may see it are a transaction with a
// snapshot, a prepared transaction, and a standby that asked the primary to wait, through a replication slot or its
// connection.

func lookAtHorizon(ctx context.Context, e *exam) (string, error) {
	for _, look := range []func(context.Context, *exam) error{oldTransactions, preparedTransactions, oldSlots, standbysFeedback} {
		if err := look(ctx, e); err != nil {
			return "", err
		}
	}
	return "nothing has held vacuum back for longer than " + span(e.config.LongTransaction), nil
}

// oldTransactions looks at sessions of this database; those of other databases do not matter.
func oldTransactions(ctx context.Context, e *exam) error {
	if _, err := e.seesAll(ctx); err != nil {
		return err
	}
	list, err := e.sessions(ctx, `
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
  AND coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL AND a.xact_start < now() - make_interval(secs => $1)
ORDER BY a.xact_start LIMIT 3`, e.config.LongTransaction.Seconds())
	if err != nil {
		return err
	}
	for _, s := range list {
		e.add(Warning, fmt.Sprintf("%s has had a transaction open for %s; until it ends, vacuum removes no row that died "+
			"since", s, span(s.running)), s.terminate())
	}
	return nil
}

func preparedTransactions(ctx context.Context, e *exam) error {
	rows, _ := e.tx.Query(ctx, `
SELECT gid, owner::text, extract(epoch FROM now() - prepared)::float8, quote_literal(gid) FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - make_interval(secs => $1)
ORDER BY prepared LIMIT 3`, e.config.LongTransaction.Seconds()) // the rows say what failed
	var gid, owner, quoted string
	var age float64
	_, err := pgx.ForEachRow(rows, []any{&gid, &owner, &age, &quoted}, func() error {
		e.add(Warning, fmt.Sprintf("prepared transaction %q of %s has been open for %s; it outlives every restart, and "+
			"until it ends vacuum removes no row that died since",
			gid, owner, span(seconds(age))),
			fmt.Sprintf("Ask its transaction manager what became of it, then COMMIT PREPARED %s; or ROLLBACK PREPARED %s;", quoted, quoted))
		return nil
	})
	return err
}

// oldSlots looks for unused replication slots that hold rows back. A slot in use moves on with its standby; see
// standbysFeedback.
func oldSlots(ctx context.Context, e *exam) error {
	rows, _ := e.tx.Query(ctx, `
SELECT slot_name::text, age(xmin), quote_literal(slot_name) FROM pg_replication_slots
WHERE xmin IS NOT NULL AND NOT active ORDER BY age(xmin) DESC LIMIT 3`) // the rows say what failed
	var name, quoted string
	var age int64
	_, err := pgx.ForEachRow(rows, []any{&name, &age, &quoted}, func() error {
		e.add(Warning, fmt.Sprintf("replication slot %q is not in use and keeps every row that died in the last %s, and the "+
			"WAL since", name, plural(age, "transaction")),
			fmt.Sprintf("Bring its standby back, or if there is none any more: SELECT pg_drop_replication_slot(%s);", quoted))
		return nil
	})
	return err
}

// staleFeedback is how many transactions a standby may lag behind; its feedback has no time.
const staleFeedback = 100_000

// standbysFeedback looks for long queries on standbys with hot_standby_feedback.
func standbysFeedback(ctx context.Context, e *exam) error {
	rows, _ := e.tx.Query(ctx, `
SELECT coalesce(r.application_name, ''), age(coalesce(s.xmin, r.backend_xmin))::bigint AS age
FROM pg_stat_replication AS r LEFT JOIN pg_replication_slots AS s ON s.active_pid = r.pid
WHERE age(coalesce(s.xmin, r.backend_xmin)) > $1::int ORDER BY 2 DESC LIMIT 3`, staleFeedback) // the rows say what failed
	var name string
	var age int64
	_, err := pgx.ForEachRow(rows, []any{&name, &age}, func() error {
		e.add(Warning, fmt.Sprintf("a query on standby %q keeps every row that died in the last %s (hot_standby_feedback)",
			name, plural(age, "transaction")),
			"On the standby, find it: SELECT pid, xact_start, usename, application_name FROM pg_stat_activity ORDER BY "+
				"xact_start LIMIT 3; and end it if it may be.")
		return nil
	})
	return err
}
