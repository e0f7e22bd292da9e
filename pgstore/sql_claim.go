package pgstore

import (
	"fmt"
	"strings"
)

// claimKind is which rows a claim looks at. Due rows and rows whose lease ran out are
// found by different indexes, so each has a statement of its own instead of an OR.
type claimKind int

const (
	claimDue     claimKind = iota // $1 limit
	claimDueFrom                  // $1 limit, $2 watermark
	claimExpired                  // $1 limit
)

// claim takes rows: it locks them, skipping those that others are just taking, and marks
// them in the way of the layout. It takes rows whose attempts are used up, too, and says
// so: they are found where they stand in the way, without a scan of their own.
//
// Where it only locks it marks nothing: the open transaction is the mark.
func (c *compiler) claim(kind claimKind) *statement {
	if kind == claimExpired && c.l.Hold != HoldLease {
		return nil
	}
	c.begin(1)
	if kind == claimDueFrom {
		c.begin(2)
	}
	pick := c.pick(kind)
	if c.l.locks() {
		return c.end(pick)
	}
	columns := &c.l.Columns
	var a assignments
	until := c.until("now()")
	switch c.l.Hold {
	case HoldLease:
		a.set(columns.LockedBy, c.unlessExhausted(c.worker(), "NULL"))
		a.set(columns.LockedUntil, c.unlessExhausted(until, "NULL"))
		if c.l.States != nil {
			a.set(columns.Status, c.unlessExhausted(literal(c.l.States.Processing), literal(c.l.States.Dead)))
		}
	case HoldDefer:
		a.set(columns.NextAttemptAt, until)
	case HoldRowLock: // returned above
	}
	if c.l.claimEnds() {
		a.set(columns.LastError, c.unlessExhausted(t(columns.LastError), c.neverSettled()))
		if next := columns.NextAttemptAt; !next.NotNull {
			a.set(next, c.unlessExhausted(t(next), "NULL"))
		}
	}
	if c.l.Count == CountOnClaim {
		// A row that will not be tried is not counted.
		a.set(columns.Attempts, t(columns.Attempts)+" + CASE WHEN picked.exhausted THEN 0 ELSE 1 END")
	}
	a.set(columns.UpdatedAt, "now()")
	return c.end(fmt.Sprintf("WITH picked AS MATERIALIZED (\n%s\n)\nUPDATE %s AS t SET %s\nFROM picked, %s\nWHERE t.ctid = picked.tid\nRETURNING %s, picked.ordered, picked.exhausted",
		indent(pick), c.table(), a, withoutFlush, c.returned()))
}

// claimEnds is whether the claim itself moves rows with used-up attempts to dead. Elsewhere
// they are held like the others until batch.fill does it.
func (l *Layout) claimEnds() bool { return l.Hold == HoldLease && l.Terminal == TerminalStatus }

// unlessExhausted is a value, or another for rows that the claim ends.
func (c *compiler) unlessExhausted(value, ended string) string {
	if !c.l.claimEnds() {
		return value
	}
	return fmt.Sprintf("CASE WHEN picked.exhausted THEN %s ELSE %s END", ended, value)
}

// withoutFlush makes the commit of a claim not wait for the disk. A claim that a crash of
// the server takes back only makes its rows due again; what was published is settled by a
// commit that waits.
const withoutFlush = "(SELECT set_config('synchronous_commit', 'off', true) OFFSET 0) AS without_flush"

// returned are the columns that a scanner reads, in its order. The mark is what the claim
// wrote to prove itself.
func (c *compiler) returned() string {
	mark := "NULL::timestamptz"
	switch {
	case c.l.locks():
	case c.l.Hold == HoldLease:
		mark = t(c.l.Columns.LockedUntil)
	default:
		mark = t(c.l.Columns.NextAttemptAt)
	}
	list := []string{"t.ctid", mark}
	for _, field := range scanned(c.l) {
		list = append(list, field.sql)
	}
	return strings.Join(list, ", ")
}

// pick selects and locks the rows of a claim, oldest first.
func (c *compiler) pick(kind claimKind) string {
	columns := &c.l.Columns
	order := c.order()
	where := []string{c.pending()}
	if kind == claimExpired {
		order = columns.LockedUntil
		where = []string{c.leased(), t(columns.LockedUntil) + " < now()"}
	} else if !columns.NextAttemptAt.IsZero() {
		where = append(where, t(columns.NextAttemptAt)+" <= now()")
	}
	if kind == claimDueFrom {
		where = append(where, t(order)+" >= $2::timestamptz")
	}
	where = append(where, c.mine(), c.claimable())
	exhausted := fmt.Sprintf("%s >= %s", t(columns.Attempts), c.maxAttempts())
	list := fmt.Sprintf("t.ctid AS tid, %s AS ordered, %s AS exhausted", t(order), exhausted)
	if c.l.locks() {
		list = fmt.Sprintf("%s, %s, %s", c.returned(), t(order), exhausted)
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS t\nWHERE %s\nORDER BY %s, %s\nLIMIT $1::int\nFOR UPDATE OF t SKIP LOCKED",
		list, c.table(), strings.Join(where, "\n  AND "), t(order), t(columns.ID))
}

// peek asks whether a claim that locks would find anything, locked by others or not.
func (c *compiler) peek() *statement {
	if !c.l.locks() {
		return nil
	}
	c.begin(0)
	due := "true"
	if next := c.l.Columns.NextAttemptAt; !next.IsZero() {
		due = t(next) + " <= now()"
	}
	return c.end(fmt.Sprintf("SELECT EXISTS (SELECT FROM %s AS t WHERE %s AND %s AND %s AND %s)",
		c.table(), c.pending(), due, c.mine(), c.claimable()))
}

// dead asks which of the events $1 have an open dead letter.
func (c *compiler) dead() *statement {
	if !c.l.claimsDead() {
		return nil
	}
	c.begin(1)
	columns := &c.l.DeadLetter.Columns
	return c.end(fmt.Sprintf("SELECT d.%s FROM %s d WHERE d.%s = ANY($1::uuid[]) AND d.%s IS NULL",
		quote(columns.EventID.Name), c.letters(), quote(columns.EventID.Name), quote(columns.RetriedAt.Name)))
}

// claimsDead is whether a claim can return a row that died after the claim began. Its lock
// then gives it the row as it is now, but the letters as they were. A claim that marks its
// rows does not: its UPDATE does not find rows that were changed since it began.
func (l *Layout) claimsDead() bool { return l.locks() && l.DeadLetter != nil }

func indent(sql string) string { return "  " + strings.ReplaceAll(sql, "\n", "\n  ") }
