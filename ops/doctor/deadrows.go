package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// deadRowsSQL reads the dead rows of tables, when autovacuum would run, and when it last did. A table's own
// settings beat the server's.
const deadRowsSQL = `
SELECT s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup,
  (coalesce(o.threshold, current_setting('autovacuum_vacuum_threshold'))::float8
    + coalesce(o.scale, current_setting('autovacuum_vacuum_scale_factor'))::float8 * greatest(c.reltuples, s.n_live_tup))::bigint,
  coalesce(o.enabled, 'true')::boolean, current_setting('autovacuum')::boolean,
  extract(epoch FROM now() - greatest(s.last_autovacuum, s.last_vacuum))::float8
FROM unnest($1::text[]) AS name
JOIN pg_class AS c ON c.oid = to_regclass(name)
JOIN pg_stat_user_tables AS s ON s.relid = c.oid
LEFT JOIN LATERAL (
  SELECT max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_threshold') AS threshold,
    max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_scale_factor') AS scale,
    max(option_value) FILTER (WHERE option_name = 'autovacuum_enabled') AS enabled
  FROM pg_options_to_table(c.reloptions)
) AS o ON true
ORDER BY 1`

// manyDead is how many dead rows begin to slow down claims.
const manyDead = 10_000

// deadRows are those of one table: a row of deadRowsSQL.
type deadRows struct {
	Table            string
	Live, Dead, Due  int64
	Enabled, Running bool
	Vacuumed         *float64
}

func lookAtDeadRows(ctx context.Context, e *exam) (string, error) {
	var tables []string
	for _, relation := range e.patient.relations() {
		if relation.churns {
			tables = append(tables, relation.name)
		}
	}
	rows, _ := e.tx.Query(ctx, deadRowsSQL, tables) // the rows say what failed
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[deadRows])
	if err != nil {
		return "", err
	}
	if len(list) > 0 && !list[0].Running {
		e.add(Warning, "autovacuum is off on this server: dead rows stay, and every claim gets slower",
			"ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();")
		return "", nil
	}
	for i := range list {
		list[i].judge(e)
	}
	return "autovacuum keeps up", nil
}

func (d *deadRows) judge(e *exam) {
	switch {
	case !d.Enabled:
		e.add(Warning, fmt.Sprintf("autovacuum is off for %s, which has %s beside %d live ones", d.Table, plural(d.Dead, "dead row"), d.Live),
			fmt.Sprintf("ALTER TABLE %s RESET (autovacuum_enabled); VACUUM (ANALYZE) %s;", d.Table, d.Table))
	case d.Dead >= manyDead && d.Dead > 2*d.Due:
		last := "it has never been vacuumed"
		if d.Vacuumed != nil {
			last = "it was last vacuumed " + span(seconds(*d.Vacuumed)) + " ago"
		}
		e.add(Warning, fmt.Sprintf("%s has %s beside %d live ones, and autovacuum should have come at %d; %s",
			d.Table, plural(d.Dead, "dead row"), d.Live, d.Due, last),
			fmt.Sprintf("First see the check vacuum-horizon: as long as it names somebody, vacuum removes nothing. Then: "+
				"VACUUM (ANALYZE) %s; ALTER TABLE %s SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);",
				d.Table, d.Table))
	}
}
