package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

type tablePatient struct{ layout tablesql.Layout }

func (t tablePatient) name() string {
	return fmt.Sprintf("layout %s, table %s", t.layout.Name, t.table())
}

func (t tablePatient) table() string  { return t.layout.Events() }
func (t tablePatient) wakes() string  { return t.table() }
func (t tablePatient) schema() string { return t.layout.Schema }

// flags returns the flags that name the table on a command line.
func (t tablePatient) flags(e *exam) string {
	flags := "--layout " + shell(cmp.Or(e.config.Layout, t.layout.Name))
	if t.layout.Schema != "" {
		flags += " --schema " + shell(t.layout.Schema)
	}
	return flags + " --table " + shell(t.layout.Table)
}

func (t tablePatient) relations() []relation {
	c := &t.layout.Columns
	list := []relation{{
		name: t.table(), churns: true, relay: []string{"SELECT", "UPDATE"}, purge: []string{"DELETE"}, emit: []string{"INSERT", "SELECT"},
		written: map[string][]string{"UPDATE": there(
			c.Status, c.Attempts, c.NextAttemptAt, c.LockedBy, c.LockedUntil, c.LastError, c.UpdatedAt, c.DeliveredAt)},
	}}
	if letters := t.layout.DeadLetter; letters != nil {
		d := &letters.Columns
		r := relation{
			name: t.layout.Letters(), churns: true,
			relay: []string{"SELECT", "INSERT"}, purge: []string{"UPDATE", "DELETE"}, // a purge locks rows first
			written: map[string][]string{
				"INSERT": there(d.ID, d.EventID, d.Type, d.AggregateType, d.AggregateID, d.Payload, d.Reason, d.FailedAt, d.CreatedAt, d.Attempts, d.LastError),
				"UPDATE": there(d.RetriedAt),
			},
		}
		if !d.RetriedAt.IsZero() {
			r.operate = []string{"UPDATE"} // without it a retry deletes the letter
		}
		list = append(list, r)
	}
	return list
}

// there returns the names of the columns that a table has.
func there(columns ...layouts.Column) (names []string) {
	for _, column := range columns {
		if !column.IsZero() {
			names = append(names, column.Name)
		}
	}
	return names
}

func (t tablePatient) deaf() string {
	return "relays find new events only when they poll, up to a second later"
}

// waiting is what has waited for longer than it should; see tablesql.
type waiting struct {
	due        int64
	dueFor     time.Duration
	held       bool
	expired    int64
	expiredFor time.Duration
	timeless   int64
}

// waiting looks for events that wait. Later statements of the transaction are planned as a claim's.
func (t tablePatient) waiting(ctx context.Context, e *exam) (w waiting, err error) {
	if _, err := e.tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return w, err
	}
	var due, expired float64
	err = e.tx.QueryRow(ctx, t.layout.Waiting(e.config.Lease), e.config.Patience.Seconds()).
		Scan(&w.due, &due, &w.held, &w.expired, &expired, &w.timeless)
	w.dueFor, w.expiredFor = seconds(due), seconds(expired)
	return w, err
}

func (t tablePatient) relays(ctx context.Context, e *exam) (string, error) {
	w, err := t.waiting(ctx, e)
	if err != nil {
		return "", err
	}
	held := w.held
	if !held && t.layout.Hold != layouts.HoldLease {
		if held, err = t.rowsLocked(ctx, e); err != nil {
			return "", err
		}
	}
	switch {
	case w.due == 0:
	case held:
		e.add(Note, fmt.Sprintf("%s due for longer than %s, the first for %s; a relay is at work",
			atLeast(w.due, "event has been", "events have been"), span(e.config.Patience), span(w.dueFor)),
			"If it does not get better, run more relays, or look at what the destination takes.")
	default:
		e.add(Problem, fmt.Sprintf("%s due for longer than %s, the first for %s, and no relay holds any",
			atLeast(w.due, "event has been", "events have been"), span(e.config.Patience), span(w.dueFor)),
			fmt.Sprintf("Run a relay: outbox relay %s --to URL. If one runs, its log says what keeps it: the broker, or a "+
				"filter.", t.flags(e)))
	}
	return "no event has been due for longer than " + span(e.config.Patience), nil
}

// rowsLocked reports whether somebody else has locked rows of the table, as a relay does
// while it publishes.
func (t tablePatient) rowsLocked(ctx context.Context, e *exam) (locked bool, err error) {
	err = e.tx.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND relation = to_regclass($1) AND mode = 'RowShareLock' AND granted
  AND pid <> pg_backend_pid())`, t.table()).Scan(&locked)
	return locked, err
}

func (t tablePatient) stuck(ctx context.Context, e *exam) (string, error) {
	// This comes before waiting, whose settings make a small table without an index look large to the planner.
	if err := t.unknown(ctx, e); err != nil {
		return "", err
	}
	w, err := t.waiting(ctx, e)
	if err != nil {
		return "", err
	}
	if w.expired > 0 {
		e.add(Problem, fmt.Sprintf("the lease of %s over for longer than %s, the first for %s: a relay died, and no other took them back",
			atLeast(w.expired, "event has been", "events has been"), span(e.config.Patience), span(w.expiredFor)),
			fmt.Sprintf("Run a relay: outbox relay %s --to URL. It takes them back at once.", t.flags(e)))
	}
	if w.timeless > 0 {
		e.add(Problem, atLeast(w.timeless, "event waits", "events wait")+" without a time to be tried at, so that no relay "+
			"ever takes them", t.layout.Revive())
	}
	if t.layout.Hold != layouts.HoldLease {
		if err := t.longHolds(ctx, e); err != nil {
			return "", err
		}
	}
	return "no event is held past its lease", nil
}

func (t tablePatient) unknown(ctx context.Context, e *exam) error {
	sql := t.layout.CountUnknown("true", tablesql.Limit)
	if sql == "" {
		return nil
	}
	n, err := sqlplan.CountIfCheap(ctx, e.tx, sql)
	status := t.layout.Columns.Status.Name
	switch {
	case n == outbox.NotCounted:
		e.add(Note, fmt.Sprintf("rows whose %s is none that the layout names were not looked for: the table is large, and has no index of them", status),
			t.layout.IndexUnknown())
	case n > 0:
		e.add(Problem, fmt.Sprintf("%s a %s that the layout does not name, so that no relay ever takes or purges them",
			atLeast(n, "row has", "rows have"), status),
			fmt.Sprintf("SELECT * FROM %s WHERE %s LIMIT 10; Give each a state that the layout names, or delete it.",
				t.layout.Events(), t.layout.Unknown(tablesql.Name)))
	}
	return err
}

// longHolds looks for sessions that keep rows locked for longer than a lease: the server ends a relay's, so these
// are others'.
func (t tablePatient) longHolds(ctx context.Context, e *exam) error {
	holders, err := e.sessions(ctx, `
JOIN pg_locks AS l ON l.pid = a.pid AND l.locktype = 'relation' AND l.relation = to_regclass($1) AND l.mode = 'RowShareLock' AND l.granted
WHERE a.pid <> pg_backend_pid() AND a.xact_start < now() - make_interval(secs => $2)
ORDER BY a.xact_start LIMIT 5`, t.table(), (e.config.Lease + e.config.Patience).Seconds())
	if err != nil {
		return err
	}
	for _, holder := range holders {
		e.add(Problem, fmt.Sprintf("%s has kept rows of %s locked for %s, longer than any relay does; nobody else can take them",
			holder, t.table(), span(holder.running)), holder.terminate())
	}
	return nil
}

func (t tablePatient) retention(ctx context.Context, e *exam) (string, error) {
	var n int64
	if err := e.tx.QueryRow(ctx, t.layout.OldDelivered(), e.config.Retention.Seconds()).Scan(&n); err != nil {
		return "", err
	}
	if n > 0 {
		e.add(Warning, fmt.Sprintf("%s delivered more than %s ago", atLeast(n, "event was", "events were"), span(e.config.Retention)),
			fmt.Sprintf("Purge them: outbox purge %s --retention %s, or run the relay with that --retention. If they are "+
				"meant to stay, say so: outbox doctor --retention.",
				t.flags(e), short(e.config.Retention)))
	}
	return fmt.Sprintf("no event was delivered more than %s ago", span(e.config.Retention)), nil
}

// atLeast is count for a number that may have stopped at its limit.
func atLeast(n int64, one, many string) string {
	if n >= tablesql.Limit {
		many = "or more " + many
	}
	return count(n, one, many)
}
