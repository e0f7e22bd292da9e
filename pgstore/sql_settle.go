package pgstore

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// settles write the outcomes of a batch, one statement for each kind. Each returns the ids of the rows that were still
// ours. Parameters: $1 the mark of the claim, $2 ctids (of the statements by ctid), then ids and the outcome's values.
type settles struct {
	byCtid                  bool
	delivered, failed, died *statement
	released                *statement // not of rows that are only locked: there is nothing to give back
}

// locked settles rows in the transaction that has locked them; ctids are as good as ids there.
func (c *compiler) locked() (s settles) {
	if c.l.Locks() {
		s = c.settles(true, heldByLock)
		s.released = nil
	}
	return s
}

// marked settles rows that have been marked, by the ctids or the ids that they had then.
func (c *compiler) marked(byCtid bool) (s settles) {
	if c.l.Hold != layouts.HoldRowLock {
		s = c.settles(byCtid, c.heldByMark)
	}
	return s
}

func (c *compiler) settles(byCtid bool, proof func() string) settles {
	return settles{
		byCtid:    byCtid,
		delivered: c.settle(byCtid, proof, c.delivered),
		failed:    c.settle(byCtid, proof, c.failed, "float8", "text"),
		died:      c.settle(byCtid, proof, c.died, "int", "text", "text"),
		released:  c.settle(byCtid, proof, c.released),
	}
}

// settle compiles one kind of outcome. The values of an outcome are s.v1, s.v2 and so on.
func (c *compiler) settle(byCtid bool, proof func() string, outcome func(where string) string, values ...string) *statement {
	types := append([]string{"uuid"}, values...)
	names := []string{"id"}
	for i := range values {
		names = append(names, fmt.Sprintf("v%d", i+1))
	}
	match := t(c.l.Columns.ID) + " = s.id"
	if byCtid {
		// A ctid finds the row without an index, but vacuum gives it away again: only together
		// with the id does it name a row.
		types, names = append([]string{"tid"}, types...), append([]string{"tid"}, names...)
		match = "t.ctid = s.tid AND " + match
	}
	c.begin(1 + len(types))
	arrays := make([]string, len(types))
	for i, typ := range types {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+2, typ)
	}
	from := fmt.Sprintf("FROM unnest(%s) AS s(%s)\nWHERE %s\n  AND %s",
		strings.Join(arrays, ", "), strings.Join(names, ", "), match, proof())
	return c.end(outcome(from))
}

// heldByMark is true while the claim whose mark is $1 holds the row. It is a CASE so that the planner does not search by
// it: the planner expects one row per mark, finds the whole batch, and would compare each with each.
func (c *compiler) heldByMark() string {
	columns := &c.l.Columns
	if c.l.Hold == layouts.HoldLease {
		return fmt.Sprintf("CASE WHEN %s = %s AND %s = $1::timestamptz AND %s THEN true ELSE false END",
			t(columns.LockedBy), c.worker(), t(columns.LockedUntil), c.l.Leased(t))
	}
	return fmt.Sprintf("CASE WHEN %s = $1::timestamptz AND %s THEN true ELSE false END", t(columns.NextAttemptAt), c.l.Pending(t))
}

// heldByLock needs no proof but the locks of the open transaction. There is no mark yet.
func heldByLock() string { return "$1::timestamptz IS NULL" }

func (c *compiler) update(a assignments, from string) string {
	return fmt.Sprintf("UPDATE %s AS t SET %s\n%s\nRETURNING %s", c.l.Events(), a, from, t(c.l.Columns.ID))
}

// freed takes the hold off a row.
func (c *compiler) freed() assignments {
	columns := &c.l.Columns
	var a assignments
	if c.l.Hold == layouts.HoldLease {
		a.set(columns.LockedBy, "NULL")
		a.set(columns.LockedUntil, "NULL")
	}
	a.set(columns.UpdatedAt, c.now())
	return a
}

// now is the time of a statement that settles. Where rows are locked, now() is that of the claim.
func (c *compiler) now() string {
	if c.l.Locks() {
		return "clock_timestamp()"
	}
	return "now()"
}

// ended is freed, for a row that will not be claimed again.
func (c *compiler) ended() assignments {
	a := c.freed()
	if next := c.l.Columns.NextAttemptAt; !next.NotNull {
		a.set(next, "NULL")
	}
	return a
}

func (c *compiler) delivered(from string) string {
	a := c.ended()
	if c.l.States != nil {
		a.set(c.l.Columns.Status, literal(c.l.States.Delivered))
	}
	a.set(c.l.Columns.DeliveredAt, c.now())
	return c.update(a, from)
}

// failed: v1 seconds until the next attempt, v2 error.
func (c *compiler) failed(from string) string {
	columns := &c.l.Columns
	a := c.freed()
	if c.l.States != nil {
		a.set(columns.Status, literal(c.l.States.Pending))
	}
	if c.l.Count == layouts.CountOnFailure {
		a.set(columns.Attempts, c.attempts()+" + 1")
	}
	a.set(columns.NextAttemptAt, c.now()+" + make_interval(secs => s.v1)")
	a.set(columns.LastError, fitting(columns.LastError, "s.v2"))
	return c.update(a, from)
}

// usedUp says why an event is out of attempts. If claims are counted, its relay died during the last one; if failures
// are counted, somebody lowered its maximum or wrote its row.
func (c *compiler) usedUp() string {
	if c.l.Count == layouts.CountOnFailure {
		return fmt.Sprintf("'the attempts are used up: ' || %s || ' of ' || %s", c.attempts(), c.maxAttempts())
	}
	return "'the attempts are used up, and the last one was never settled: its worker died, or lost it'"
}

// neverSettled is usedUp with the error before it, for the column of the last error.
func (c *compiler) neverSettled() string {
	text := c.usedUp()
	if c.l.Columns.LastError.IsZero() {
		return text
	}
	length, _ := tablesql.ErrorLength(c.l.Columns.LastError)
	return fmt.Sprintf("left(%s || coalesce('; before that: ' || nullif(%s, ''), ''), %d)", text, t(c.l.Columns.LastError), length)
}

// fitting is an error, cut to what the column takes.
func fitting(c layouts.Column, text string) string {
	if length, cut := tablesql.ErrorLength(c); cut {
		return fmt.Sprintf("left(%s, %d)", text, length)
	}
	return text
}

// died: v1 attempts to count, v2 error or NULL for neverSettled, v3 reason.
func (c *compiler) died(from string) string {
	columns := &c.l.Columns
	lastError := "coalesce(" + fitting(columns.LastError, "s.v2") + ", " + c.neverSettled() + ")"
	a := c.ended()
	if c.l.Count == layouts.CountOnFailure {
		a.set(columns.Attempts, c.attempts()+" + s.v1")
	}
	a.set(columns.LastError, lastError)
	if c.l.Terminal == layouts.TerminalStatus {
		a.set(columns.Status, literal(c.l.States.Dead))
		return c.update(a, from)
	}
	return c.bury(a, from, "coalesce(s.v2, "+c.usedUp()+")", "s.v3")
}

// bury updates rows and writes their dead letters, in one statement. It returns the rows that have their letter now.
func (c *compiler) bury(a assignments, from, lastError, reason string) string {
	columns, letter := &c.l.Columns, &c.l.DeadLetter.Columns
	var names, values []string
	put := func(column layouts.Column, value string) {
		if !column.IsZero() {
			names, values = append(names, quote(column.Name)), append(values, value)
		}
	}
	put(letter.ID, "gen_random_uuid()")
	put(letter.EventID, "dead."+quote(columns.ID.Name))
	for _, copied := range []struct {
		to, from layouts.Column
		sql      string
	}{
		{letter.Type, columns.Type, "dead.%s"},
		{letter.AggregateType, columns.AggregateType, "dead.%s"},
		{letter.AggregateID, columns.AggregateID, "dead.%s"},
		{letter.Payload, columns.Payload, "dead.%s"},
		{letter.CreatedAt, columns.CreatedAt, "coalesce(dead.%s, now())"},
		{letter.Attempts, columns.Attempts, "dead.%s"},
	} {
		if !copied.from.IsZero() {
			put(copied.to, fmt.Sprintf(copied.sql, quote(copied.from.Name)))
		}
	}
	put(letter.LastError, fitting(letter.LastError, "dead.outbox_error"))
	put(letter.Reason, "dead.outbox_reason::"+c.l.SQLType(letter.Reason, "reason"))
	put(letter.FailedAt, "clock_timestamp()")
	return fmt.Sprintf("WITH dead AS (\n  UPDATE %s AS t SET %s\n%s\n  RETURNING t.*, %s AS outbox_error, %s AS outbox_reason\n), letters AS (\n  INSERT INTO %s (%s)\n  SELECT %s FROM dead\n  RETURNING %s AS event\n)\nSELECT event FROM letters",
		c.l.Events(), a, indent(from), lastError, reason,
		c.l.Letters(), strings.Join(names, ", "), strings.Join(values, ", "), quote(letter.EventID.Name))
}

// released gives rows back as if they had not been tried.
func (c *compiler) released(from string) string {
	columns := &c.l.Columns
	a := c.freed()
	if c.l.States != nil {
		a.set(columns.Status, literal(c.l.States.Pending))
	}
	if c.l.Count == layouts.CountOnClaim {
		a.set(columns.Attempts, c.attempts()+" - 1")
	}
	if c.l.Hold == layouts.HoldDefer {
		a.set(columns.NextAttemptAt, "now()")
	}
	return c.update(a, from)
}

// push marks rows that are only locked, where there is a column for it.
func (c *compiler) push() *statement {
	if !c.l.Locks() || c.l.Hold == layouts.HoldRowLock {
		return nil
	}
	return c.mark(c.l.Columns.NextAttemptAt, heldByLock)
}

// renew moves the end of a lease.
func (c *compiler) renew() *statement {
	switch c.l.Hold {
	case layouts.HoldLease:
		return c.mark(c.l.Columns.LockedUntil, c.heldByMark)
	case layouts.HoldDefer:
		return c.mark(c.l.Columns.NextAttemptAt, c.heldByMark)
	default:
		return nil
	}
}

// mark writes a new mark. $1 old mark, $2 ids; it returns ids, ctids and the new mark.
func (c *compiler) mark(column layouts.Column, proof func() string) *statement {
	columns := &c.l.Columns
	c.begin(2)
	var a assignments
	a.set(column, c.until(c.now()))
	a.set(columns.UpdatedAt, c.now())
	return c.end(fmt.Sprintf("UPDATE %s AS t SET %s\nFROM unnest($2::uuid[]) AS s(id)\nWHERE %s = s.id\n  AND %s\nRETURNING %s, t.ctid, %s",
		c.l.Events(), a, t(columns.ID), proof(), t(columns.ID), t(column)))
}
