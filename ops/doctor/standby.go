package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlname"
)

// standbysSQL finds the standbys that stream from this server. Logical replication only copies tables, and a backup
// ends.
const standbysSQL = `
SELECT coalesce(r.application_name, ''), coalesce(r.sync_state, '') FROM pg_stat_replication AS r
WHERE coalesce(r.state, '') <> 'backup'
  AND NOT EXISTS (SELECT FROM pg_replication_slots AS s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')
ORDER BY 1`

func lookAtStandbys(ctx context.Context, e *exam) (string, error) {
	if all, err := e.seesAll(ctx); err != nil || !all {
		return "", err
	}
	rows, _ := e.tx.Query(ctx, standbysSQL) // the rows say what failed
	var names []string
	var name, state string
	synchronous := false
	if _, err := pgx.ForEachRow(rows, []any{&name, &state}, func() error {
		names = append(names, name)
		synchronous = synchronous || state == "sync" || state == "quorum"
		return nil
	}); err != nil {
		return "", err
	}
	var wanted string
	if err := e.tx.QueryRow(ctx, `SHOW synchronous_standby_names`).Scan(&wanted); err != nil {
		return "", err
	}
	switch {
	case wanted != "" && !synchronous:
		e.add(Problem, fmt.Sprintf("synchronous_standby_names is %q and no such standby is connected: every commit waits for one", wanted),
			"Bring the standby back, or let commits go on without it: ALTER SYSTEM SET synchronous_standby_names = ''; "+
				"SELECT pg_reload_conf();")
	case len(names) > 0 && !synchronous:
		e.add(Warning, fmt.Sprintf("%s asynchronous (%s): a failover loses the events that were committed in the last "+
			"moments, with their business rows, "+
			"and publishes again what was settled in them", standbysAre(len(names)), strings.Join(names, ", ")),
			fmt.Sprintf("If that must not be: ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (%s)'; SELECT "+
				"pg_reload_conf(); commits then wait for a standby.",
				strings.Join(quoted(names), ", ")))
	}
	if len(names) == 0 {
		return "no standby is connected", nil
	}
	return "commits wait for a standby: " + wanted, nil
}

// quoted returns distinct names in the syntax of synchronous_standby_names.
func quoted(names []string) []string {
	names = slices.Compact(slices.Clone(names))
	for i := range names {
		names[i] = sqlname.Quote(names[i])
	}
	return names
}

func standbysAre(n int) string {
	if n == 1 {
		return "the standby is"
	}
	return fmt.Sprintf("all %d standbys are", n)
}
