package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// session is a session of the server, from pg_stat_activity. It leaves out the statement, which may hold data.
type session struct {
	pid                            int
	user, application, from, state string
	// running is how long its transaction has been running.
	running time.Duration
}

const sessionSQL = `
SELECT a.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), coalesce(a.state, ''),
  coalesce(extract(epoch FROM now() - a.xact_start), 0)::float8
FROM pg_stat_activity AS a `

// sessions finds sessions a; rest is what follows FROM.
func (e *exam) sessions(ctx context.Context, rest string, args ...any) ([]session, error) {
	rows, _ := e.tx.Query(ctx, sessionSQL+rest, args...) // the rows say what failed
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s session, err error) {
		var running float64
		err = row.Scan(&s.pid, &s.user, &s.application, &s.from, &s.state, &running)
		s.running = seconds(running)
		return s, err
	})
}

func (s session) String() string {
	var parts []string
	if s.user != "" {
		parts = append(parts, "user "+s.user)
	}
	if s.application != "" {
		parts = append(parts, fmt.Sprintf("application %q", s.application))
	}
	if s.from != "" {
		parts = append(parts, "from "+s.from)
	}
	if s.state != "" {
		parts = append(parts, s.state)
	}
	return fmt.Sprintf("process %d of the server (%s)", s.pid, strings.Join(parts, ", "))
}

func (s session) terminate() string {
	return fmt.Sprintf("Find out what it does: SELECT query FROM pg_stat_activity WHERE pid = %d; and end it if it may be: "+
		"SELECT pg_terminate_backend(%d);", s.pid, s.pid)
}

// seesAll reports whether the connected role sees the sessions of others, and adds a note if it does not.
func (e *exam) seesAll(ctx context.Context) (all bool, err error) {
	var role string
	err = e.tx.QueryRow(ctx, `SELECT quote_ident(current_user), pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`).Scan(&role, &all)
	if err == nil && !all {
		e.add(Note, "could not look at the sessions of other roles", fmt.Sprintf("GRANT pg_monitor TO %s;", role))
	}
	return all, err
}
