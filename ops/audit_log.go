package ops

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/sqlname"
)

//go:embed migrations/*.sql
var files embed.FS

// AuditTable is the table of the audit log. It stands in the schema of the outbox's tables.
const AuditTable = "outbox_audit"

// Migrations are the goose migrations of the audit log. They run in the schema that is first
// in the search path. Without its table everything works, and is not audited.
func Migrations() (fs.FS, error) {
	return migrations.Render(files, func(sql string) (string, error) { return sql, nil })
}

// unaudited is why something is not in the audit log.
const unaudited = "there is no table " + AuditTable + "; make it with outbox migrate up --audit"

// auditLog writes down what is done to one target.
type auditLog struct {
	pool   *pgxpool.Pool
	schema string
	target string
}

// sql writes the log's tables, {audit} and {events}, into a statement.
func (l *auditLog) sql(statement string) string {
	schema := ""
	if l.schema != "" {
		schema = sqlname.Quote(l.schema) + "."
	}
	return strings.NewReplacer("{audit}", schema+AuditTable, "{events}", schema+AuditTable+"_events").Replace(statement)
}

// exists reports whether there is a log to write to.
func (l *auditLog) exists(ctx context.Context) (exists bool, err error) {
	err = l.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, l.sql("{audit}")).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("outbox: look for the audit log: %w", err)
	}
	return exists, nil
}

// begin writes that something begins, and returns the entry's number.
func (l *auditLog) begin(ctx context.Context, operation Operation, actor string, request any) (id int64, err error) {
	doc, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("outbox: write the audit log: %w", err)
	}
	err = l.pool.QueryRow(ctx, l.sql(`INSERT INTO {audit} (actor, operation, target, request) VALUES ($1, $2, $3, $4) RETURNING id`),
		actor, string(operation), l.target, doc).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("outbox: write the audit log: %w", err)
	}
	return id, nil
}

// note counts events, in the transaction that changes them.
func (l *auditLog) note(ctx context.Context, tx pgx.Tx, id int64, events int64, ids []uuid.UUID) error {
	if _, err := tx.Exec(ctx, l.sql(`UPDATE {audit} SET events = events + $2 WHERE id = $1`), id, events); err != nil {
		return fmt.Errorf("outbox: write the audit log: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, l.sql(`INSERT INTO {events} (event_id, audit_id) SELECT unnest($2::uuid[]), $1 ON CONFLICT DO NOTHING`),
		id, plainIDs(ids))
	if err != nil {
		return fmt.Errorf("outbox: write the audit log: %w", err)
	}
	return nil
}

// end writes how it ended.
func (l *auditLog) end(ctx context.Context, id int64, outcome string) error {
	_, err := l.pool.Exec(ctx, l.sql(`UPDATE {audit} SET ended_at = clock_timestamp(), outcome = $2 WHERE id = $1`), id, outcome)
	if err != nil {
		return fmt.Errorf("outbox: write the audit log: %w", err)
	}
	return nil
}

// page lists entries, newest first.
func (l *auditLog) page(ctx context.Context, page Page) (*AuditLog, error) {
	size, err := page.size()
	if err != nil {
		return nil, err
	}
	after, err := parsePosition(page.Cursor)
	if err != nil {
		return nil, err
	}
	exists, err := l.exists(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return &AuditLog{Entries: []AuditEntry{}, Missing: unaudited}, nil
	}
	before := int64(1) << 62
	if after != nil {
		before = after.Seq
	}
	rows, err := l.pool.Query(ctx, l.sql(`
		SELECT id, actor, operation, target, request, events, started_at, coalesce(ended_at, '0001-01-01 00:00:00Z'), outcome
		FROM {audit} WHERE target = $1 AND id < $2 ORDER BY id DESC LIMIT $3`), l.target, before, size+1)
	if err != nil {
		return nil, fmt.Errorf("outbox: read the audit log: %w", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e AuditEntry, err error) {
		err = row.Scan(&e.ID, &e.Actor, &e.Operation, &e.Target, &e.Request, &e.Events, &e.StartedAt, &e.EndedAt, &e.Outcome)
		e.StartedAt, e.EndedAt = e.StartedAt.UTC(), e.EndedAt.UTC()
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: read the audit log: %w", err)
	}
	log := &AuditLog{Entries: entries}
	if len(entries) > size {
		log.Entries = entries[:size]
		log.Next = position{Walk: "audit", Seq: entries[size-1].ID}.String()
	}
	return log, nil
}

// pastTenses are the operations in a timeline.
var pastTenses = map[Operation]string{
	OperationRetry: "retried", OperationReplay: "replayed", OperationHold: "held", OperationRelease: "released",
}

// moments are what people did to one event.
func (l *auditLog) moments(ctx context.Context, id uuid.UUID) ([]Moment, error) {
	exists, err := l.exists(ctx)
	if err != nil || !exists {
		return nil, err
	}
	rows, err := l.pool.Query(ctx, l.sql(`
		SELECT e.at, a.operation, a.actor FROM {events} AS e JOIN {audit} AS a ON a.id = e.audit_id
		WHERE e.event_id = $1 AND a.target = $2 ORDER BY e.at`), [16]byte(id), l.target)
	if err != nil {
		return nil, fmt.Errorf("outbox: read the audit log: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Moment, err error) {
		var operation Operation
		var actor string
		err = row.Scan(&m.At, &operation, &actor)
		m.At, m.What, m.Detail = m.At.UTC(), pastTenses[operation], "by "+actor
		return m, err
	})
}

// plainIDs are ids as the database takes them.
func plainIDs(ids []uuid.UUID) [][16]byte {
	plain := make([][16]byte, len(ids))
	for i, id := range ids {
		plain[i] = id
	}
	return plain
}

// noteAlone is note for what is done outside of the database, or in transactions of others.
// The end of ctx does not stop it: it is done.
func (l *auditLog) noteAlone(ctx context.Context, id int64, events int64, ids []uuid.UUID) error {
	if id == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return l.note(ctx, tx, id, events, ids) })
}
