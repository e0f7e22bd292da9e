package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// locksSQL finds locks of the tables $1 that block producers or relays and were held for longer than $2 seconds. A
// prepared transaction has no process.
const locksSQL = `
SELECT coalesce(l.pid, 0), l.relation::regclass::text, l.mode FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.relation = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name)
  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  AND coalesce(l.pid, 0) <> pg_backend_pid() AND (a.xact_start < now() - make_interval(secs => $2) OR l.pid IS NULL)
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY a.xact_start NULLS FIRST LIMIT 5`

// waitersSQL finds sessions that have waited for a lock of the tables $1 for longer than $2 seconds, and one
// session that each waits for.
const waitersSQL = `
SELECT l.pid, l.relation::regclass::text, extract(epoch FROM clock_timestamp() - l.waitstart)::float8,
  coalesce((pg_blocking_pids(l.PID))[1], 0)
FROM pg_locks AS l
WHERE l.locktype = 'relation' AND NOT l.granted AND l.relation = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name)
  AND l.waitstart < clock_timestamp() - make_interval(secs => $2)
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.waitstart LIMIT 5`

func lookAtLocks(ctx context.Context, e *exam) (string, error) {
	if _, err := e.seesAll(ctx); err != nil {
		return "", err
	}
	tables, err := e.tables(ctx)
	if err != nil {
		return "", err
	}
	if err := e.strongLocks(ctx, tables); err != nil {
		return "", err
	}
	return "nobody has kept others from the tables for longer than " + span(e.config.Patience), e.longWaits(ctx, tables)
}

func (e *exam) strongLocks(ctx context.Context, tables []string) error {
	rows, _ := e.tx.Query(ctx, locksSQL, tables, e.config.Patience.Seconds()) // the rows say what failed
	type lock struct {
		PID         int
		Table, Mode string
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lock])
	if err != nil {
		return err
	}
	for _, l := range list {
		who, err := e.session(ctx, l.PID)
		if err != nil {
			return err
		}
		if who == nil {
			e.add(Problem, fmt.Sprintf("a prepared transaction has %s locked (%s)", l.Table, l.Mode),
				"SELECT gid, prepared, owner FROM pg_prepared_xacts; then COMMIT PREPARED or ROLLBACK PREPARED.")
			continue
		}
		e.add(Problem, fmt.Sprintf("%s has had %s locked (%s) for up to %s; nobody can write to it", who, l.Table, l.Mode, span(who.running)),
			who.terminate())
	}
	return nil
}

func (e *exam) longWaits(ctx context.Context, tables []string) error {
	rows, _ := e.tx.Query(ctx, waitersSQL, tables, e.config.Patience.Seconds()) // the rows say what failed
	type wait struct {
		PID     int
		Table   string
		Waited  float64
		Blocker int
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wait])
	if err != nil {
		return err
	}
	for _, w := range list {
		waiter, err := e.session(ctx, w.PID)
		if err != nil {
			return err
		}
		blocker, err := e.session(ctx, w.Blocker)
		if err != nil {
			return err
		}
		if waiter == nil || blocker == nil {
			continue // it is over
		}
		e.add(Problem, fmt.Sprintf("%s has waited %s for %s, which %s has; who comes later waits behind it",
			waiter, span(seconds(w.Waited)), w.Table, blocker),
			blocker.terminate())
	}
	return nil
}

func (e *exam) session(ctx context.Context, pid int) (*session, error) {
	list, err := e.sessions(ctx, `WHERE a.pid = $1`, pid)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}
