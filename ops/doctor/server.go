package doctor

import (
	"context"
	"fmt"
)

// Versions of PostgreSQL, as server_version_num has them.
const (
	oldestVersion = 140000
	// Before 14.4, CREATE INDEX CONCURRENTLY could leave rows out of the index.
	leakyIndexes, soundIndexes = 140000, 140004
)

func lookAtServer(ctx context.Context, e *exam) (string, error) {
	var number int
	var version string
	var standby bool
	err := e.tx.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery()`).
		Scan(&number, &version, &standby)
	if err != nil {
		return "", err
	}
	if standby {
		e.add(Problem, "this server is a standby; emits and relays write, and can only do so on the primary",
			"Connect to the primary. A URL with all hosts and target_session_attrs=read-write finds it.")
	}
	if seen, do := judgeVersion(number, version); seen != "" {
		e.add(Warning, seen, do)
	}
	return fmt.Sprintf("PostgreSQL %s, the primary", version), nil
}

func judgeVersion(number int, version string) (seen, do string) {
	switch {
	case number < oldestVersion:
		return fmt.Sprintf("the server is PostgreSQL %s; Outbox needs 14 or later", version), "Upgrade the server."
	case number >= leakyIndexes && number < soundIndexes:
		return fmt.Sprintf("the server is PostgreSQL %s, in which CREATE INDEX CONCURRENTLY can leave rows out of an index: "+
				"events would never be claimed", version),
			"Update to the latest 14, then rebuild the indexes of the tables: REINDEX TABLE CONCURRENTLY."
	}
	return "", ""
}
