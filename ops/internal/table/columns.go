package table

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// claimWindow is how near the due time of an untried row must be for the row to count as claimed, if a claim only
// defers the row.
const claimWindow = "interval '30 s'"

func (t *Table) state() string {
	c := &t.layout.Columns
	attempts := orElse(c.Attempts, "coalesce(%s, 0)", "0")
	var b strings.Builder
	fmt.Fprintf(&b, "CASE WHEN %s THEN 'delivered' WHEN %s THEN 'dead'", t.layout.Delivered(), t.layout.Dead())
	if t.layout.Hold == layouts.HoldLease {
		fmt.Fprintf(&b, " WHEN %s THEN 'claimed'", t.layout.Leased(col))
	}
	if next := c.NextAttemptAt; !next.IsZero() {
		if t.layout.Hold == layouts.HoldDefer {
			fmt.Fprintf(&b, " WHEN %[1]s > now() AND %[1]s <= now() + %[2]s AND %[3]s = 0 THEN 'claimed'", col(next), claimWindow, attempts)
		}
		fmt.Fprintf(&b, " WHEN %[1]s > now() AND %[2]s > 0 THEN 'retrying' WHEN %[1]s > now() THEN 'scheduled'", col(next), attempts)
	}
	b.WriteString(" ELSE 'due' END")
	return b.String()
}

// changedAt is the SQL of when a row came into its state; empty if the table does not record it. On a walk along
// dead letters it is the letter's time.
func (t *Table) changedAt(w *walk) string {
	if w.letters {
		return "t.outbox_failed_at"
	}
	return orElse(t.layout.Columns.UpdatedAt, "%s", "")
}

// eventList lists the columns of an event in the order in which scanEvent reads them. Columns that the table
// lacks are empty.
func (t *Table) eventList(reason string, whole bool) string {
	c := &t.layout.Columns
	const text = "coalesce(%s::text, '')"
	const none = "'00000000-0000-0000-0000-000000000000'::uuid"
	const never = "NULL::timestamptz"
	next := orElse(c.NextAttemptAt, "CASE WHEN NOT ("+t.layout.Delivered()+") AND NOT ("+t.layout.Dead()+") THEN %s END", never)
	list := []string{
		col(c.ID),
		orElse(c.Namespace, text, "''"), orElse(c.Topic, text, "''"), orElse(c.Type, text, "''"),
		orElse(c.AggregateType, text, "''"), orElse(c.AggregateID, text, "''"),
		orElse(c.TenantID, "coalesce(%s, "+none+")", none),
		orElse(c.DedupeKey, text, "''"), orElse(c.Key, text, "''"),
		orElse(c.Attempts, "coalesce(%s, 0)", "0"), orElse(c.MaxAttempts, "coalesce(%s, 0)", "0"),
		orElse(c.LastError, text, "''"), reason, col(c.CreatedAt), next,
		orElse(c.DeliveredAt, "%s", never),
		orElse(c.LockedBy, text, "''"), orElse(c.LockedUntil, "%s", never),
		t.state(),
	}
	if whole {
		list = append(list, t.payload(), orElse(c.Headers, "%s::text", "NULL::text"), orElse(c.ContentType, text, "''"))
	}
	return strings.Join(list, ",\n  ")
}

func (t *Table) payload() string {
	column := t.layout.Columns.Payload
	if column.Type == "bytea" {
		return col(column)
	}
	return "convert_to(" + col(column) + "::text, 'UTF8')"
}

// scanEvent reads a row of eventList; the columns after it go into more.
func (t *Table) scanEvent(row pgx.CollectableRow, whole bool, more ...any) (e view.Event, err error) {
	var created, next, delivered, claimed pgtype.Timestamptz
	var headers []byte
	dests := []any{
		(*[16]byte)(&e.ID), &e.Namespace, &e.Topic, &e.Type, &e.AggregateType, &e.AggregateID, (*[16]byte)(&e.TenantID),
		&e.DedupeKey, &e.Key, &e.Attempts, &e.MaxAttempts, &e.LastError, &e.Reason, &created, &next, &delivered,
		&e.ClaimedBy, &claimed, &e.State,
	}
	if whole {
		dests = append(dests, &e.Payload, &headers, &e.ContentType)
	}
	if err := row.Scan(append(dests, more...)...); err != nil {
		return e, err
	}
	e.MaxAttempts = cmp.Or(e.MaxAttempts, t.layout.MaxAttempts)
	if e.Key == "" && e.AggregateType != "" && e.AggregateID != "" {
		e.Key = e.AggregateType + "/" + e.AggregateID // a queue table's key is its aggregate
	}
	if len(headers) > 0 {
		if err := json.Unmarshal(headers, &e.Headers); err != nil {
			return e, fmt.Errorf("read the headers of event %s: %w", e.ID, err)
		}
	}
	e.CreatedAt, e.NextAttemptAt, e.DeliveredAt, e.ClaimedUntil = query.Moment(created), query.Moment(next), query.Moment(delivered), query.Moment(claimed)
	return e, nil
}
