package doctor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// tablePatient is a table that a layout describes.
type tablePatient struct{ layout layouts.Layout }

func (t tablePatient) name() string {
	return fmt.Sprintf("layout %s, table %s", t.layout.Name, t.table())
}

func (t tablePatient) table() string  { return qualified(t.layout.Schema, t.layout.Table) }
func (t tablePatient) wakes() string  { return t.table() }
func (t tablePatient) schema() string { return t.layout.Schema }

// flags are what names the table on a command line.
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
			name: qualified(t.layout.Schema, letters.Table), churns: true,
			relay: []string{"SELECT", "INSERT"}, purge: []string{"UPDATE", "DELETE"}, // which locks them first
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

// there are the names of those columns that a table has.
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

func (t tablePatient) relays(ctx context.Context, e *exam) error {
	w, err := pgstore.FindWaiting(ctx, e.tx, t.layout, e.config.Lease, e.config.Patience)
	if err != nil {
		return err
	}
	held := w.Held
	if !held && t.layout.Hold != layouts.HoldLease {
		if held, err = t.rowsLocked(ctx, e); err != nil {
			return err
		}
	}
	switch {
	case w.Due == 0:
		e.well("no event has been due for longer than %s", span(e.config.Patience))
	case held:
		e.add(Note, fmt.Sprintf("%s due for longer than %s, the first for %s; a relay is at work",
			atLeast(w.Due, "event has been", "events have been"), span(e.config.Patience), span(w.DueFor)),
			"If it does not get better, run more relays, or look at what the destination takes.")
	default:
		e.add(Problem, fmt.Sprintf("%s due for longer than %s, the first for %s, and no relay holds any",
			atLeast(w.Due, "event has been", "events have been"), span(e.config.Patience), span(w.DueFor)),
			fmt.Sprintf("Run a relay: outbox relay %s --to URL. If one runs, its log says what keeps it: the broker, or a "+
				"filter.", t.flags(e)))
	}
	return nil
}

// rowsLocked reports whether somebody else has locked rows of the table, as a relay does
// while it publishes.
func (t tablePatient) rowsLocked(ctx context.Context, e *exam) (locked bool, err error) {
	err = e.tx.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND relation = to_regclass($1) AND mode = 'RowShareLock' AND granted
  AND pid <> pg_backend_pid())`, t.table()).Scan(&locked)
	return locked, err
}

func (t tablePatient) stuck(ctx context.Context, e *exam) error {
	w, err := pgstore.FindWaiting(ctx, e.tx, t.layout, e.config.Lease, e.config.Patience)
	if err != nil {
		return err
	}
	if w.Expired > 0 {
		e.add(Problem, fmt.Sprintf("the lease of %s over for longer than %s, the first for %s: a relay died, and no other took them back",
			atLeast(w.Expired, "event has been", "events has been"), span(e.config.Patience), span(w.ExpiredFor)),
			fmt.Sprintf("Run a relay: outbox relay %s --to URL. It takes them back at once.", t.flags(e)))
	}
	if w.Timeless > 0 {
		e.add(Problem, atLeast(w.Timeless, "event waits", "events wait")+" without a time to be tried at, so that no relay "+
			"ever takes them", w.Revive)
	}
	t.unknown(e, &w)
	if t.layout.Hold != layouts.HoldLease {
		if err := t.longHolds(ctx, e); err != nil {
			return err
		}
	}
	e.well("no event is held past its lease")
	return nil
}

// unknown tells of rows whose status nobody knows.
func (t tablePatient) unknown(e *exam, w *pgstore.Waiting) {
	status := t.layout.Columns.Status.Name
	switch {
	case w.Unknown == outbox.NotCounted:
		e.add(Note, fmt.Sprintf("rows whose %s is none that the layout names were not looked for: the table is large, and has no index of them", status),
			fmt.Sprintf("outbox migrate up %s --adopt adds one.", t.flags(e)))
	case w.Unknown > 0:
		e.add(Problem, fmt.Sprintf("%s a %s that the layout does not name, so that no relay ever takes or purges them",
			atLeast(w.Unknown, "row has", "rows have"), status),
			w.FindUnknown+" Give each a state that the layout names, or delete it.")
	}
}

// longHolds looks for sessions that keep rows locked for longer than a lease: the server ends
// a relay's, so these are others'.
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

func (t tablePatient) retention(ctx context.Context, e *exam) error {
	n, err := pgstore.DeliveredBefore(ctx, e.tx, t.layout, e.config.Retention)
	if err != nil {
		return err
	}
	if n > 0 {
		e.add(Warning, fmt.Sprintf("%s delivered more than %s ago", atLeast(n, "event was", "events were"), span(e.config.Retention)),
			fmt.Sprintf("Purge them: outbox purge %s --retention %s, or run the relay with that --retention. If they are "+
				"meant to stay, say so: outbox doctor --retention.",
				t.flags(e), short(e.config.Retention)))
	}
	e.well("no event was delivered more than %s ago", span(e.config.Retention))
	return nil
}

// atLeast is count of a number that may have stopped at its limit.
func atLeast(n int64, one, many string) string {
	if n >= pgstore.WaitingLimit {
		many = "or more " + many
	}
	return count(n, one, many)
}
