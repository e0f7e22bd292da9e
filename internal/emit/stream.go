package emit

import (
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/pgstream"
)

// The statements that write events, with the names of tables and functions in braces. Their
// parameters are emitColumns; none names slot, xid, seq and created_at, which only the
// table's defaults may write.
//
// An event's place in the log, its seq, has to be drawn late. It comes after the
// transaction's xid, which the defaults see to, and after every lock that emitting waits
// for: an event that drew its seq and then waited for a dedupe key would stand before events
// of its key that were committed meanwhile. So the dedupe rows are written first, and a row
// of the log is computed only once its own is there.
//
// An event that comes with neither id nor dedupe key can meet no other and leaves no dedupe
// row. So the id that Emit made for it is not known as "already enqueued" later on.
const (
	emitOneSQL = `INSERT INTO {log} (shard, id, namespace, topic, type, key, aggregate_type, aggregate_id, tenant_id,
  headers, content_type, payload, not_before, max_attempts)
SELECT {shard}($5::text, $1::uuid), $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::uuid,
  $9::jsonb, $10::text, $11::bytea, $12::timestamptz, $13::integer`

	dedupeOneSQL = `WITH first AS (
  INSERT INTO {dedupe} (id, namespace, topic, dedupe_key)
  VALUES ($1::uuid, coalesce($2::text, ''), $3::text, $14::text)
  ON CONFLICT DO NOTHING
  RETURNING id
)
` + emitOneSQL + `
WHERE EXISTS (SELECT FROM first)`

	// unnest in the list gives rows in the order of the arrays, and they get their seqs in it.
	// After FROM each array would be copied to a table of its own first.
	emitManySQL = `INSERT INTO {log} (shard, id, namespace, topic, type, key, aggregate_type, aggregate_id, tenant_id,
  headers, content_type, payload, not_before, max_attempts)
SELECT {shard}(new.key, new.id), new.id, new.namespace, new.topic, new.type, new.key, new.aggregate_type,
  new.aggregate_id, new.tenant_id, new.headers::jsonb, new.content_type, new.payload,
  new.not_before::timestamptz, new.max_attempts::integer
FROM (
  SELECT unnest($1::uuid[]) AS id, unnest($2::text[]) AS namespace, unnest($3::text[]) AS topic,
    unnest($4::text[]) AS type, unnest($5::text[]) AS key, unnest($6::text[]) AS aggregate_type,
    unnest($7::text[]) AS aggregate_id, unnest($8::uuid[]) AS tenant_id, unnest($9::text[]) AS headers,
    unnest($10::text[]) AS content_type, unnest($11::bytea[]) AS payload, unnest($12::text[]) AS not_before,
    unnest($13::text[]) AS max_attempts
) AS new`

	// The dedupe rows are written in one order by everybody, so that two transactions with the
	// same keys wait for each other instead of deadlocking. IS TRUE keeps the planner from
	// making a join of it, which would neither keep the order of the arrays nor be fast when
	// it expects ten rows and gets a thousand.
	dedupeManySQL = `WITH first AS (
  INSERT INTO {dedupe} (id, namespace, topic, dedupe_key)
  SELECT id, coalesce(namespace, ''), topic, dedupe_key
  FROM (
    SELECT unnest($1::uuid[]) AS id, unnest($2::text[]) AS namespace, unnest($3::text[]) AS topic,
      unnest($14::text[]) AS dedupe_key
  ) AS new
  ORDER BY dedupe_key COLLATE "C", namespace COLLATE "C", topic COLLATE "C", id
  ON CONFLICT DO NOTHING
  RETURNING id
)
` + emitManySQL + `
WHERE (new.id IN (SELECT id FROM first)) IS TRUE
RETURNING id`

	findDedupeSQL = `SELECT place, id FROM (
  SELECT place, coalesce(
    (SELECT d.id FROM {dedupe} d WHERE d.id = old.id),
    (SELECT d.id FROM {dedupe} d
     WHERE d.namespace = coalesce(old.namespace, '') AND d.topic = old.topic AND d.dedupe_key = old.dedupe_key)) AS id
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS old(id, namespace, topic, dedupe_key, place)
) AS found
WHERE id IS NOT NULL`
)

// emitColumns are the parameters of the statements; the last is no column of the log.
var emitColumns = []Column{
	{UUID: ID},
	{Text: String(func(e *outbox.Event) *string { return &e.Namespace })},
	{Text: String(func(e *outbox.Event) *string { return &e.Topic })},
	{Text: String(func(e *outbox.Event) *string { return &e.Type })},
	{Text: String(func(e *outbox.Event) *string { return &e.Key })},
	{Text: String(func(e *outbox.Event) *string { return &e.AggregateType })},
	{Text: String(func(e *outbox.Event) *string { return &e.AggregateID })},
	{UUID: TenantID},
	{Text: Headers},
	{Text: String(func(e *outbox.Event) *string { return &e.ContentType })},
	{Bytes: func(e *outbox.Event) []byte { return e.Payload }},
	{Text: NotBefore},
	{Text: MaxAttempts},
	{Text: String(func(e *outbox.Event) *string { return &e.DedupeKey })},
}

// streamPlan compiles a stream into the statements that write events.
func streamPlan(s pgstream.Stream) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	sql := strings.NewReplacer(
		"{log}", streamsql.Table(s.Schema, "outbox_stream"), "{dedupe}", streamsql.Table(s.Schema, "outbox_dedupe"),
		"{shard}", streamsql.Table(s.Schema, "outbox_shard"), "{lock}", streamsql.Table(s.Schema, "outbox_lock_keys"),
	).Replace
	stored, required := Rule{Stored: true}, Rule{Stored: true, Required: true}
	return &Plan{
		Target: "the stream",
		Layout: pgstream.LayoutName,
		Fields: Fields{
			Namespace: stored, Topic: required, Type: required, AggregateType: stored, AggregateID: stored,
			TenantID: stored, DedupeKey: stored, Key: stored,
			Headers: stored, ContentType: stored, NotBefore: stored, MaxAttempts: stored,
			Payload: PayloadBytes,
		},
		Columns:   emitColumns,
		Insert:    sql(dedupeOneSQL),
		InsertNew: sql(emitOneSQL), InsertManyNew: sql(emitManySQL),
		InsertMany: sql(dedupeManySQL),
		NewColumns: emitColumns[:len(emitColumns)-1],
		Find:       sql(findDedupeSQL), FindColumns: []int{0, 1, 2, len(emitColumns) - 1},
		KeyFromAggregate: true,
		Lock:             sql("SELECT {lock}($1::text[])"),
	}, nil
}
