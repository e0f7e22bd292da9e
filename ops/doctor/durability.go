package doctor

import (
	"context"
	"fmt"
)

func lookAtDurability(ctx context.Context, e *exam) (string, error) {
	var fsync, pages, commit, source, standbys, role, database string
	err := e.tx.QueryRow(ctx, `
SELECT current_setting('fsync'), current_setting('full_page_writes'), s.setting, s.source, current_setting('synchronous_standby_names'),
  quote_ident(current_user), quote_ident(current_database())
FROM pg_settings AS s WHERE s.name = 'synchronous_commit'`).Scan(&fsync, &pages, &commit, &source, &standbys, &role, &database)
	if err != nil {
		return "", err
	}
	for _, setting := range []struct{ name, value, risk string }{
		{"fsync", fsync, "nothing is sure to be on disk: a crash of the machine can lose events, delivered or not, and " +
			"damage the whole database"},
		{"full_page_writes", pages, "a crash of the machine in the middle of a write can damage tables beyond repair"},
	} {
		if setting.value == "off" {
			e.add(Problem, setting.name+" is off: "+setting.risk, fmt.Sprintf("ALTER SYSTEM SET %s = on; SELECT "+
				"pg_reload_conf();", setting.name))
		}
	}
	switch {
	case commit == "off":
		e.add(Warning, "synchronous_commit is off for this role: a crash of the server loses the events of the last "+
			"moments, although their transactions were told that they are committed",
			setBack(source, role, database))
	case commit == "local" && standbys != "":
		e.add(Warning, "synchronous_commit is local for this role: commits do not wait for the synchronous standby, and a "+
			"failover loses the events of the last moments",
			setBack(source, role, database))
	}
	return "fsync and full_page_writes are on, synchronous_commit is " + commit, nil
}

// setBack turns synchronous_commit on where it was turned off.
func setBack(source, role, database string) string {
	const on = "SET synchronous_commit = on"
	switch source {
	case "user":
		return fmt.Sprintf("ALTER ROLE %s %s;", role, on)
	case "database":
		return fmt.Sprintf("ALTER DATABASE %s %s;", database, on)
	case "database user":
		return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s %s;", role, database, on)
	case "client", "session":
		return "Take synchronous_commit out of the connection's URL and options."
	}
	return fmt.Sprintf("ALTER SYSTEM %s; SELECT pg_reload_conf();", on)
}
