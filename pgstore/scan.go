package pgstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// claimed is a row of a claim.
type claimed struct {
	outbox.Message
	tid       pgtype.TID
	mark      pgtype.Timestamptz
	ordered   pgtype.Timestamptz
	exhausted bool
	headers   []byte
}

// scannedField is a column that a claim returns, and where its value goes.
type scannedField struct {
	name string
	sql  string
	dest func(*claimed) any
}

// scanned lists what a claim returns of a table, in order. The database turns NULL into the zero value, so that rows are
// read without pointers.
func scanned(l *tablesql.Layout) []scannedField {
	c := &l.Columns
	var fields []scannedField
	add := func(column layouts.Column, sql string, dest func(*claimed) any) {
		if !column.IsZero() {
			fields = append(fields, scannedField{column.Name, fmt.Sprintf(sql, t(column)), dest})
		}
	}
	const text = "coalesce(%s::text, '')"
	add(c.ID, "%s", func(r *claimed) any { return (*[16]byte)(&r.ID) })
	add(c.Namespace, text, func(r *claimed) any { return &r.Namespace })
	add(c.Topic, text, func(r *claimed) any { return &r.Topic })
	add(c.Type, text, func(r *claimed) any { return &r.Type })
	add(c.AggregateType, text, func(r *claimed) any { return &r.AggregateType })
	add(c.AggregateID, text, func(r *claimed) any { return &r.AggregateID })
	add(c.TenantID, "coalesce(%s, '00000000-0000-0000-0000-000000000000')", func(r *claimed) any { return (*[16]byte)(&r.TenantID) })
	add(c.DedupeKey, text, func(r *claimed) any { return &r.DedupeKey })
	add(c.Key, text, func(r *claimed) any { return &r.Key })
	if c.Payload.SQLType(layouts.FieldPayload) == "bytea" {
		add(c.Payload, "%s", func(r *claimed) any { return &r.Payload })
	} else {
		add(c.Payload, "%s::text", func(r *claimed) any { return &r.Payload })
	}
	add(c.Headers, "%s::text", func(r *claimed) any { return &r.headers })
	add(c.ContentType, text, func(r *claimed) any { return &r.ContentType })
	add(c.MaxAttempts, "coalesce(%s, 0)", func(r *claimed) any { return &r.MaxAttempts })
	add(c.Attempts, "coalesce(%s, 0)", func(r *claimed) any { return &r.Attempt })
	add(c.CreatedAt, "coalesce(%s, now())", func(r *claimed) any { return &r.CreatedAt })
	return fields
}

// scanner reads the rows of a claim.
type scanner struct {
	fields       []scannedField
	createdAt    string // the name of the column
	maxAttempts  int
	countedAhead bool
	key          func(*outbox.Message) string
}

func newScanner(l *tablesql.Layout, maxAttempts int) *scanner {
	s := &scanner{fields: scanned(l), createdAt: l.Columns.CreatedAt.Name, maxAttempts: maxAttempts, countedAhead: l.Count == layouts.CountOnClaim}
	if l.Columns.Key.IsZero() && !l.Columns.AggregateType.IsZero() && !l.Columns.AggregateID.IsZero() {
		// A queue table's key is its aggregate.
		s.key = func(m *outbox.Message) string { return m.AggregateType + "/" + m.AggregateID }
	}
	return s
}

// firstRows limits the rows that memory is allocated for in advance.
const firstRows = 1000

// collect reads all rows, n at most, and puts them in claimed order: RETURNING has none.
func (s *scanner) collect(rows pgx.Rows, n int) ([]claimed, error) {
	defer rows.Close()
	var list []claimed
	dests := make([]any, 0, len(s.fields)+4)
	var plans []pgtype.ScanPlan
	for rows.Next() {
		if list == nil {
			list = make([]claimed, 0, min(n, firstRows)) // rows are large, and copying them as the list grows is slow
		}
		list = append(list, claimed{})
		row := &list[len(list)-1]
		dests = append(dests[:0], &row.tid, &row.mark)
		for i := range s.fields {
			dests = append(dests, s.fields[i].dest(row))
		}
		dests = append(dests, &row.ordered, &row.exhausted)
		if plans == nil {
			plans = planScan(rows, dests)
		}
		if err := s.read(row, rows.RawValues(), plans, dests); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b claimed) int {
		if order := a.ordered.Time.Compare(b.ordered.Time); order != 0 {
			return order
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return list, nil
}

// planScan plans how each column is read. Rows.Scan would fail the whole claim at the first column that cannot be read.
func planScan(rows pgx.Rows, dests []any) []pgtype.ScanPlan {
	plans := make([]pgtype.ScanPlan, len(dests))
	types := rows.TypeMap()
	for i, column := range rows.FieldDescriptions() {
		plans[i] = types.PlanScan(column.DataTypeOID, column.Format, dests[i])
	}
	return plans
}

// read reads one row. A column that cannot be read makes the event invalid, unless the column names or holds the row.
func (s *scanner) read(row *claimed, values [][]byte, plans []pgtype.ScanPlan, dests []any) error {
	const id = 2 // after tid and mark
	for i := range dests {
		err := plans[i].Scan(values[i], dests[i])
		if err == nil {
			continue
		}
		if i <= id || i >= len(dests)-2 {
			return fmt.Errorf("read a claimed row: %w", err)
		}
		if row.Invalid == nil {
			row.Invalid = fmt.Errorf("the row cannot be read: %s: %w", s.fields[i-id].name, err)
		}
	}
	s.finish(row)
	return nil
}

// finish completes the message of a row.
func (s *scanner) finish(row *claimed) {
	if row.MaxAttempts == 0 {
		row.MaxAttempts = s.maxAttempts
	}
	if !s.countedAhead {
		row.Attempt++ // the attempt that is about to be made
	}
	if s.key != nil {
		row.Key = s.key(&row.Message)
	}
	row.CreatedAt = row.CreatedAt.In(time.UTC)
	if year := row.CreatedAt.Year(); row.Invalid == nil && (year < 1 || year > 9999) {
		// PostgreSQL knows such years. RFC 3339, in which the time travels, does not: every consumer would stumble over it.
		row.Invalid = fmt.Errorf("the row cannot be read: %s: the year is %d; it must be between 1 and 9999", s.createdAt, year)
	}
	if len(row.headers) > 0 {
		if err := json.Unmarshal(row.headers, &row.Headers); err != nil && row.Invalid == nil {
			row.Headers = nil
			row.Invalid = fmt.Errorf("the row cannot be read: the headers are not an object of strings: %w", err)
		}
		row.headers = nil
	}
}

// toID reads a row that is an event's id.
func toID(row pgx.CollectableRow) (id uuid.UUID, err error) {
	err = row.Scan((*[16]byte)(&id))
	return id, err
}
