package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/ops/view"
)

// Log is the audit log of one outbox.
type Log struct {
	pool   *pgxpool.Pool
	outbox string
	names  *strings.Replacer
}

// New returns the audit log of an outbox, by the outbox's name. schema is the schema of the log's tables; empty for
// the search path. New does not connect.
func New(pool *pgxpool.Pool, schema, outbox string) *Log {
	if schema != "" {
		schema = sqlname.Quote(schema) + "."
	}
	return &Log{pool, outbox, strings.NewReplacer("{audit}", schema+Table, "{events}", schema+EventsTable)}
}

// sql inserts the names of the tables into a statement.
func (l *Log) sql(statement string) string { return l.names.Replace(statement) }

func (l *Log) exists(ctx context.Context) (exists bool, err error) {
	err = l.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, l.sql("{audit}")).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("outbox: look for the audit log: %w", err)
	}
	return exists, nil
}

// Begin writes an entry for an operation that starts. It returns nil if the log does not exist.
func (l *Log) Begin(ctx context.Context, operation view.Operation, actor string, request any) (*Record, error) {
	if exists, err := l.exists(ctx); err != nil || !exists {
		return nil, err
	}
	record := &Record{log: l}
	doc, err := json.Marshal(request)
	if err == nil {
		err = l.pool.QueryRow(ctx, l.sql(`INSERT INTO {audit} (actor, operation, target, request) VALUES ($1, $2, $3, $4) RETURNING id`),
			actor, string(operation), l.outbox, doc).Scan(&record.id)
	}
	if err != nil {
		return nil, writeError(err)
	}
	return record, nil
}

// List reads entries with ids below before, newest first. It returns false if the log does not exist.
func (l *Log) List(ctx context.Context, before int64, size int) (entries []Entry, exists bool, err error) {
	if exists, err = l.exists(ctx); err != nil || !exists {
		return nil, false, err
	}
	rows, _ := l.pool.Query(ctx, l.sql(`
		SELECT id, actor, operation, target, request, events, started_at, coalesce(ended_at, '0001-01-01 00:00:00Z'), outcome
		FROM {audit} WHERE target = $1 AND id < $2 ORDER BY id DESC LIMIT $3`), l.outbox, before, size) // the rows say what failed
	entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		err = row.Scan(&e.ID, &e.Actor, &e.Operation, &e.Target, &e.Request, &e.Events, &e.StartedAt, &e.EndedAt, &e.Outcome)
		e.StartedAt, e.EndedAt = e.StartedAt.UTC(), e.EndedAt.UTC()
		return e, err
	})
	if err != nil {
		return nil, true, fmt.Errorf("outbox: read the audit log: %w", err)
	}
	return entries, true, nil
}

// pastTenses name the operations in a timeline.
var pastTenses = map[view.Operation]string{
	view.OperationRetry: "retried", view.OperationReplay: "replayed", view.OperationHold: "held", view.OperationRelease: "released",
}

// Moments returns what people did to one event.
func (l *Log) Moments(ctx context.Context, id uuid.UUID) (moments []view.Moment, err error) {
	if exists, err := l.exists(ctx); err != nil || !exists {
		return nil, err
	}
	rows, _ := l.pool.Query(ctx, l.sql(`
		SELECT e.at, a.operation, a.actor FROM {events} AS e JOIN {audit} AS a ON a.id = e.audit_id
		WHERE e.event_id = $1 AND a.target = $2 ORDER BY e.at`), [16]byte(id), l.outbox) // the rows say what failed
	moments, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m view.Moment, err error) {
		var operation view.Operation
		var actor string
		err = row.Scan(&m.At, &operation, &actor)
		m.At, m.What, m.Detail = m.At.UTC(), pastTenses[operation], "by "+actor
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: read the audit log: %w", err)
	}
	return moments, nil
}
