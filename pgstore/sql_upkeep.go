package pgstore

import (
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
)

// sweep moves rows whose lease ran out on the last allowed attempt to dead, up to $1 of
// them, and returns their ids. Rows of other holds are met by the claim.
func (c *compiler) sweep() *statement {
	if c.l.Hold != layouts.HoldLease {
		return nil
	}
	c.begin(1)
	columns := &c.l.Columns
	where := fmt.Sprintf("WHERE t.ctid = ANY(ARRAY(\n  SELECT t.ctid FROM %s AS t\n  WHERE %s AND %s < now() AND %s >= %s AND %s\n  ORDER BY %s LIMIT $1::int FOR UPDATE OF t SKIP LOCKED))",
		c.l.Events(), c.l.Leased(t), t(columns.LockedUntil), c.attempts(), c.maxAttempts(), c.mine(), t(columns.LockedUntil))
	a := c.ended()
	a.set(columns.LastError, c.neverSettled())
	if c.l.Terminal == layouts.TerminalStatus {
		a.set(columns.Status, literal(c.l.States.Dead))
		return c.end(c.update(a, where))
	}
	return c.end(c.bury(a, where, c.usedUp(), literal(string(outbox.ReasonMaxAttempts))))
}

// old is true for rows of this store that were delivered more than $1 seconds ago.
func (c *compiler) old() string { return c.l.DeliveredBefore() + " AND " + c.mine() }

// purge deletes up to $2 delivered rows older than $1 seconds, or counts them all.
func (c *compiler) purge(count bool) *statement {
	if count {
		c.begin(1)
		return c.end(fmt.Sprintf("SELECT count(*) FROM %s AS t WHERE %s", c.l.Events(), c.old()))
	}
	c.begin(2)
	return c.end(fmt.Sprintf("DELETE FROM %s AS t WHERE t.ctid = ANY(ARRAY(\n  SELECT t.ctid FROM %s AS t WHERE %s\n  LIMIT $2::int FOR UPDATE OF t SKIP LOCKED))",
		c.l.Events(), c.l.Events(), c.old()))
}

// purgeLetters deletes up to $2 dead letters older than $1 seconds. An open letter is what
// keeps its event dead, so the event goes with it: left behind, it would be published.
func (c *compiler) purgeLetters(count bool) *statement {
	if c.l.DeadLetter == nil {
		return nil
	}
	d := &c.l.DeadLetter.Columns
	// Called after begin, which starts the count of parameters.
	where := func() string {
		return fmt.Sprintf("d.%s < now() - make_interval(secs => $1::float8) AND %s", quote(d.FailedAt.Name), c.mineOfLetters())
	}
	if count {
		c.begin(1)
		return c.end(fmt.Sprintf("SELECT count(*) FROM %s AS d WHERE %s", c.l.Letters(), where()))
	}
	c.begin(2)
	return c.end(fmt.Sprintf(`WITH letters AS (
  DELETE FROM %[1]s AS d WHERE d.ctid = ANY(ARRAY(
    SELECT d.ctid FROM %[1]s AS d WHERE %[2]s LIMIT $2::int FOR UPDATE OF d SKIP LOCKED))
  RETURNING d.%[3]s AS event, %[4]s AS open
), events AS (
  DELETE FROM %[5]s AS t USING letters WHERE letters.open AND %[6]s = letters.event AND %[7]s
)
SELECT count(*) FROM letters`,
		c.l.Letters(), where(), quote(d.EventID.Name), c.l.OpenLetter(), c.l.Events(), t(c.l.Columns.ID), c.l.Pending(t)))
}

// stats counts rows by what happens to them next. Each count reads at most StatsLimit rows.
func (c *compiler) stats() *statement {
	c.begin(0)
	columns := &c.l.Columns
	due, retrying, held := "true", "false", "false"
	if !columns.NextAttemptAt.IsZero() {
		due = "next <= now()"
		retrying = "next > now() AND attempts > 0"
		if c.l.Hold == layouts.HoldDefer {
			// A row that is held looks like one that is scheduled soon.
			held = fmt.Sprintf("next > now() AND next <= now() + %s AND attempts = 0", c.lease())
		}
	}
	next := "NULL::timestamptz"
	if !columns.NextAttemptAt.IsZero() {
		next = t(columns.NextAttemptAt)
	}
	waiting := fmt.Sprintf("SELECT %s AS next, %s AS attempts, %s AS created, %s >= %s AS exhausted\n  FROM %s AS t WHERE %s AND %s AND %s LIMIT %d",
		next, c.attempts(), t(columns.CreatedAt), c.attempts(), c.maxAttempts(),
		c.l.Events(), c.l.Pending(t), c.mine(), c.l.NotDead(), outbox.StatsLimit)
	leased := "SELECT NULL::timestamptz AS created WHERE false"
	if c.l.Hold == layouts.HoldLease {
		leased = fmt.Sprintf("SELECT %s AS created FROM %s AS t WHERE %s AND %s LIMIT %d",
			t(columns.CreatedAt), c.l.Events(), c.l.Leased(t), c.mine(), outbox.StatsLimit)
	}
	var dead string
	if c.l.Terminal == layouts.TerminalStatus {
		dead = fmt.Sprintf("SELECT FROM %s AS t WHERE %s = %s AND %s LIMIT %d",
			c.l.Events(), t(columns.Status), literal(c.l.States.Dead), c.mine(), outbox.StatsLimit)
	} else {
		dead = fmt.Sprintf("SELECT FROM %s AS d WHERE %s AND %s LIMIT %d",
			c.l.Letters(), c.l.OpenLetter(), c.mineOfLetters(), outbox.StatsLimit)
	}
	return c.end(fmt.Sprintf(`WITH waiting AS (
  %s
), leased AS (
  %s
), dead AS (
  %s
)
SELECT count(*) FILTER (WHERE NOT exhausted AND %s),
  count(*) FILTER (WHERE NOT exhausted AND NOT (%s) AND NOT (%s) AND NOT (%s)),
  count(*) FILTER (WHERE NOT exhausted AND %s),
  count(*) FILTER (WHERE NOT exhausted AND %s) + (SELECT count(*) FROM leased),
  (SELECT count(*) FROM dead),
  count(*) FILTER (WHERE exhausted),
  coalesce(extract(epoch FROM now() - least(min(created) FILTER (WHERE isfinite(created)), (SELECT min(created) FROM leased WHERE isfinite(created)))), 0)::float8
FROM waiting`, waiting, leased, dead, due, due, retrying, held, retrying, held))
}

// retry brings dead events $1 back to life: attempts 0, due now. It returns their ids.
func (c *compiler) retry() *statement {
	c.begin(1)
	columns := &c.l.Columns
	var a assignments
	a.set(columns.Attempts, "0")
	a.set(columns.NextAttemptAt, "now()")
	a.set(columns.UpdatedAt, "now()")
	if c.l.Terminal == layouts.TerminalStatus {
		a.set(columns.Status, literal(c.l.States.Pending))
		return c.end(fmt.Sprintf("UPDATE %s AS t SET %s\nWHERE %s = ANY($1::uuid[]) AND %s = %s AND %s\nRETURNING %s",
			c.l.Events(), a, t(columns.ID), t(columns.Status), literal(c.l.States.Dead), c.mine(), t(columns.ID)))
	}
	d := &c.l.DeadLetter.Columns
	mark := fmt.Sprintf("UPDATE %s AS d SET %s = now()", c.l.Letters(), quote(d.RetriedAt.Name))
	if d.RetriedAt.IsZero() {
		mark = fmt.Sprintf("DELETE FROM %s AS d", c.l.Letters()) // nothing else can close it
	}
	return c.end(fmt.Sprintf("WITH letters AS (\n  %s\n  WHERE d.%s = ANY($1::uuid[]) AND %s AND %s\n  RETURNING d.%s AS id\n)\nUPDATE %s AS t SET %s\nWHERE %s IN (SELECT id FROM letters) AND %s\nRETURNING %s",
		mark, quote(d.EventID.Name), c.l.OpenLetter(), c.mineOfLetters(), quote(d.EventID.Name), c.l.Events(), a, t(columns.ID), c.l.Pending(t), t(columns.ID)))
}
