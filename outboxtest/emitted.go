package outboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstream"
)

// Tx is an open transaction: a pgx.Tx, an *sql.Tx of any PostgreSQL driver, or what outboxgorm.Tx makes of a *gorm.DB. A pool
// (*pgxpool.Pool, *sql.DB) shows what is committed. These have no method in common; anything else fails the test.
type Tx any

// connOf is how statements are run in a transaction.
func connOf(tx Tx) (emit.Conn, error) {
	switch tx := tx.(type) {
	case emit.PGXTx:
		return emit.PGXConn{Tx: tx}, nil
	case emit.SQLTx:
		return emit.SQLConn{Tx: tx}, nil
	}
	return nil, fmt.Errorf("a %T is no transaction; give a pgx.Tx, an *sql.Tx, outboxgorm.Tx of a *gorm.DB, or a pool", tx)
}

// emitted reads all events that a transaction sees in a target, in the order in which they were emitted, and the
// target's name.
func emitted(t testing.TB, tx Tx, target outbox.Target) (events []outbox.Event, name string) {
	t.Helper()
	conn, err := connOf(tx)
	if err != nil {
		t.Fatal(err)
	}
	from, name, err := sourceOf(target)
	if err != nil {
		t.Fatal(err)
	}
	if events, err = from.read(t.Context(), conn); err != nil {
		t.Fatalf("read the events of %s: %v", name, err)
	}
	return events, name
}

// source is how events are read: an SQL expression for each field of an event, empty where the target has none.
type source struct {
	id, namespace, topic, kind, aggregateType, aggregateID, tenantID, dedupeKey, key string
	payload, headers, contentType, notBefore, maxAttempts                            string
	from, order                                                                      string
}

func sourceOf(target outbox.Target) (from source, name string, err error) {
	switch target := target.(type) {
	case pgstream.Stream:
		return streamSource(target), "the stream", target.Validate()
	case layouts.Layout:
		return tableSource(&target), "table " + target.Table, target.Validate()
	}
	return source{}, "", fmt.Errorf("a %T is no target; give a pgstream.Stream or a layouts.Layout", target)
}

func streamSource(s pgstream.Stream) source {
	return source{
		id: "e.id", namespace: "e.namespace", topic: "e.topic", kind: "e.type",
		aggregateType: "e.aggregate_type", aggregateID: "e.aggregate_id", tenantID: "e.tenant_id", dedupeKey: "d.dedupe_key", key: "e.key",
		payload: "e.payload", headers: "e.headers", contentType: "e.content_type", notBefore: "e.not_before", maxAttempts: "e.max_attempts",
		from:  streamsql.Table(s.Schema, "outbox_stream") + " e LEFT JOIN " + streamsql.Table(s.Schema, "outbox_dedupe") + " d ON d.id = e.id",
		order: "e.seq",
	}
}

func tableSource(l *layouts.Layout) source {
	column := func(c layouts.Column) string {
		if c.IsZero() {
			return ""
		}
		return "e." + sqlname.Quote(c.Name)
	}
	c := &l.Columns
	s := source{
		id: column(c.ID), namespace: column(c.Namespace), topic: column(c.Topic), kind: column(c.Type),
		aggregateType: column(c.AggregateType), aggregateID: column(c.AggregateID), tenantID: column(c.TenantID),
		dedupeKey: column(c.DedupeKey), key: column(c.Key), payload: column(c.Payload), headers: column(c.Headers),
		contentType: column(c.ContentType), maxAttempts: column(c.MaxAttempts),
		from: sqlname.Qualified(l.Schema, l.Table) + " e", order: column(c.CreatedAt) + ", " + column(c.ID),
	}
	if s.key == "" && s.aggregateType != "" && s.aggregateID != "" {
		s.key = s.aggregateType + "::text || '/' || " + s.aggregateID + "::text" // as the relay has it
	}
	if due := column(c.NextAttemptAt); due != "" {
		// A row that may be tried at once is due when it is made.
		s.notBefore = "CASE WHEN " + due + " > " + column(c.CreatedAt) + " THEN " + due + " END"
	}
	if c.Payload.SQLType(layouts.FieldPayload) != "bytea" {
		s.payload = "convert_to(" + s.payload + "::text, 'UTF8')"
	}
	return s
}

func (s *source) read(ctx context.Context, conn emit.Conn) (events []outbox.Event, err error) {
	// Drivers differ in what they make of types, and agree on text, bytea, timestamptz and integers.
	text := func(expression string) string {
		if expression == "" {
			return "''"
		}
		return "coalesce((" + expression + ")::text, '')"
	}
	or := func(expression, other string) string {
		if expression == "" {
			return other
		}
		return expression
	}
	statement := "SELECT " + text(s.id) + ", " + text(s.namespace) + ", " + text(s.topic) + ", " + text(s.kind) + ", " +
		text(s.aggregateType) + ", " + text(s.aggregateID) + ", " + text(s.tenantID) + ", " + text(s.dedupeKey) + ", " + text(s.key) + ", " +
		s.payload + ", " + text(s.headers) + ", " + text(s.contentType) + ", " +
		or(s.notBefore, "NULL::timestamptz") + ", coalesce(" + or(s.maxAttempts, "0") + ", 0)::bigint" +
		" FROM " + s.from + " ORDER BY " + s.order
	err = conn.Query(ctx, statement, nil, func(scan func(...any) error) error {
		var e outbox.Event
		var id, tenantID, headers string
		var notBefore *time.Time
		if err := scan(&id, &e.Namespace, &e.Topic, &e.Type, &e.AggregateType, &e.AggregateID, &tenantID, &e.DedupeKey, &e.Key,
			&e.Payload, &headers, &e.ContentType, &notBefore, &e.MaxAttempts); err != nil {
			return err
		}
		if e.ID, err = uuid.Parse(id); err != nil {
			return err
		}
		if tenantID != "" {
			if e.TenantID, err = uuid.Parse(tenantID); err != nil {
				return err
			}
		}
		if headers != "" {
			if err := json.Unmarshal([]byte(headers), &e.Headers); err != nil {
				return fmt.Errorf("headers of event %s: %w", id, err)
			}
		}
		if notBefore != nil {
			e.NotBefore = notBefore.UTC()
		}
		events = append(events, e)
		return nil
	})
	return events, err
}
