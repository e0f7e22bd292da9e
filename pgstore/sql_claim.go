package pgstore

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/layouts"
)

// claimKind is which rows a claim looks at. Different indexes find due rows and rows whose lease ran out: each kind has a
// statement of its own instead of an OR.
type claimKind int

const (
	claimDue     claimKind = iota // $1 limit
	claimDueFrom                  // $1 limit, $2 watermark
	claimExpired                  // $1 limit
)

// claims are the statement of one kind: without and with rows to leave out. The second has four
// more parameters, those of leaving.
type claims struct{ all, some *statement }

func (c *compiler) claims(kind claimKind) claims {
	return claims{all: c.claim(kind, false), some: c.claim(kind, true)}
}

// of is the statement for a request, and its last arguments.
func (c claims) of(request *outbox.ClaimRequest) (*statement, []any) {
	if request.Closed.IsZero() && len(request.Except) == 0 {
		return c.all, nil
	}
	closed := request.Closed
	return c.some, []any{orEmpty(closed.Topics), orEmpty(closed.Types), orEmpty(closed.OtherTypes), pgsession.IDs(request.Except)}
}

// orEmpty is never nil: a comparison with all of NULL would be true of no row.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// claim locks rows, skipping those that others are taking, and marks them as the layout says; if it only locks, the open
// transaction is the mark. It also returns rows whose attempts are used up, so that they need no scan of their own.
func (c *compiler) claim(kind claimKind, leaves bool) *statement {
	if kind == claimExpired && c.l.Hold != layouts.HoldLease {
		return nil
	}
	free := 1
	if kind == claimDueFrom {
		free = 2
	}
	leaving := "true"
	if leaves {
		leaving = c.leaving(free)
		free += leavingArgs
	}
	c.begin(free)
	pick := c.pick(kind, leaving)
	if c.l.Locks() {
		return c.end(pick)
	}
	columns := &c.l.Columns
	var a assignments
	until := c.until("now()")
	switch c.l.Hold {
	case layouts.HoldLease:
		a.set(columns.LockedBy, c.unlessExhausted(c.worker(), "NULL"))
		a.set(columns.LockedUntil, c.unlessExhausted(until, "NULL"))
		if c.l.States != nil {
			a.set(columns.Status, c.unlessExhausted(c.state(c.l.States.Processing), c.state(c.l.States.Dead)))
		}
	case layouts.HoldDefer:
		a.set(columns.NextAttemptAt, until)
	case layouts.HoldRowLock: // returned above
	}
	if c.l.ClaimEnds() {
		a.set(columns.LastError, c.unlessExhausted(t(columns.LastError), c.neverSettled()))
		if next := columns.NextAttemptAt; !next.NotNull {
			a.set(next, c.unlessExhausted(t(next), "NULL"))
		}
	}
	if c.l.Count == layouts.CountOnClaim {
		// A row that will not be tried is not counted.
		a.set(columns.Attempts, c.attempts()+" + CASE WHEN picked.exhausted THEN 0 ELSE 1 END")
	}
	a.set(columns.UpdatedAt, "now()")
	return c.end(fmt.Sprintf("WITH picked AS MATERIALIZED (\n%s\n)\nUPDATE %s AS t SET %s\nFROM picked, %s\nWHERE t.ctid = picked.tid\nRETURNING %s, picked.ordered, picked.exhausted",
		indent(pick), c.l.Events(), a, withoutFlush, c.returned()))
}

// unlessExhausted is a value, or another for rows that the claim ends.
func (c *compiler) unlessExhausted(value, ended string) string {
	if !c.l.ClaimEnds() {
		return value
	}
	return fmt.Sprintf("CASE WHEN picked.exhausted THEN %s ELSE %s END", ended, value)
}

// state is a state with its type: a choice between two literals would be a text, which is no enum.
func (c *compiler) state(name string) string {
	if c.l.Columns.Status.Enum == "" {
		return literal(name)
	}
	return literal(name) + "::" + c.l.Qualified(c.l.Columns.Status.Enum)
}

// withoutFlush makes the commit of a claim not wait for the disk. If a crash of the server undoes a claim, its rows are
// only due again; the commit of a settle waits.
const withoutFlush = "(SELECT set_config('synchronous_commit', 'off', true) OFFSET 0) AS without_flush"

// returned are the columns that a scanner reads, in its order. The mark is what the claim
// wrote to prove itself.
func (c *compiler) returned() string {
	mark := "NULL::timestamptz"
	switch {
	case c.l.Locks():
	case c.l.Hold == layouts.HoldLease:
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
func (c *compiler) pick(kind claimKind, leaving string) string {
	columns := &c.l.Columns
	order := c.l.Order()
	where := []string{c.l.Pending(t), c.l.Due()}
	if kind == claimExpired {
		order = columns.LockedUntil
		where = []string{c.l.Leased(t), t(columns.LockedUntil) + " < now()"}
	}
	if kind == claimDueFrom {
		where = append(where, t(order)+" >= $2::timestamptz")
	}
	where = append(where, c.mine(), c.claimable())
	if leaving != "true" {
		where = append(where, leaving)
	}
	exhausted := fmt.Sprintf("%s >= %s", c.attempts(), c.maxAttempts())
	list := fmt.Sprintf("t.ctid AS tid, %s AS ordered, %s AS exhausted", t(order), exhausted)
	if c.l.Locks() {
		list = fmt.Sprintf("%s, %s, %s", c.returned(), t(order), exhausted)
	}
	by := t(order) + ", " + t(columns.ID)
	if kind == claimExpired {
		// Rows of one claim have one end, and the index is on that alone: with the id they would all
		// have to be read to be sorted.
		by = t(order)
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS t\nWHERE %s\nORDER BY %s\nLIMIT $1::int\nFOR UPDATE OF t SKIP LOCKED",
		list, c.l.Events(), strings.Join(where, "\n  AND "), by)
}

// leavingArgs is how many parameters leaving has.
const leavingArgs = 4

// leaving leaves out rows that go to closed topics, and rows by their ids. Its parameters come after the first ones:
// closed topics, types that go to closed topics, types that go elsewhere whatever their topic, ids.
func (c *compiler) leaving(after int) string {
	columns := &c.l.Columns
	topics, types, others, ids := param(after+1, "text[]"), param(after+2, "text[]"), param(after+3, "text[]"), param(after+4, "uuid[]")
	topic, kind := "''", "''"
	if !columns.Topic.IsZero() {
		topic = fmt.Sprintf("coalesce(%s::text, '')", t(columns.Topic))
	}
	if !columns.Type.IsZero() {
		kind = fmt.Sprintf("coalesce(%s::text, '')", t(columns.Type))
	}
	return fmt.Sprintf("NOT (%[2]s = ANY(%[4]s) OR %[1]s = ANY(%[3]s) AND %[2]s <> ALL(%[5]s))\n  AND %[7]s <> ALL(%[6]s)",
		topic, kind, topics, types, others, ids, t(columns.ID))
}

func param(number int, cast string) string { return fmt.Sprintf("$%d::%s", number, cast) }

// peek asks whether a claim that locks would find anything, locked by others or not.
func (c *compiler) peek() *statement {
	if !c.l.Locks() {
		return nil
	}
	c.begin(0)
	return c.end(fmt.Sprintf("SELECT EXISTS (SELECT FROM %s AS t WHERE %s AND %s AND %s AND %s)",
		c.l.Events(), c.l.Pending(t), c.l.Due(), c.mine(), c.claimable()))
}

// dead asks which of the events $1 have an open dead letter: a claim that only locks can return a row that died after the
// claim began, because it sees the row as it is now but the letters as they were. A claim that marks its rows does not
// find rows that changed since it began.
func (c *compiler) dead() *statement {
	if !c.l.Locks() || c.l.DeadLetter == nil {
		return nil
	}
	c.begin(1)
	event := quote(c.l.DeadLetter.Columns.EventID.Name)
	return c.end(fmt.Sprintf("SELECT d.%[1]s FROM %[2]s d WHERE d.%[1]s = ANY($1::uuid[]) AND %[3]s", event, c.l.Letters(), c.l.OpenLetter()))
}

func indent(sql string) string { return "  " + strings.ReplaceAll(sql, "\n", "\n  ") }
