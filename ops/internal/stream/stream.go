// Package stream is package ops' half for subscriptions of a stream.
package stream

import (
	"cmp"
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstream"
)

// Subscription is a subscription of a stream.
type Subscription struct {
	pool   *pgxpool.Pool
	stream pgstream.Stream
	name   string
}

// New returns the half of a subscription. It does not connect.
func New(pool *pgxpool.Pool, stream pgstream.Stream, name string) (*Subscription, error) {
	return &Subscription{pool, stream, name}, stream.Validate()
}

// Describe says what the subscription has and can do.
func (s *Subscription) Describe() view.Description {
	return view.Description{
		Name: pgstream.LayoutName + "/" + s.name, Kind: "stream", Layout: pgstream.LayoutName, Table: "outbox_stream", Subscription: s.name,
		Fields: []view.Field{
			view.FieldID, view.FieldNamespace, view.FieldTopic, view.FieldType, view.FieldAggregate, view.FieldKey, view.FieldTenant, view.FieldError,
		},
		States: []view.State{
			view.StateDue, view.StateScheduled, view.StateRetrying, view.StateWaiting, view.StateStopped, view.StateHeld, view.StateDead, view.StateDelivered,
		},
		Cannot: map[view.Operation]string{}, RelayReplays: true,
	}
}

// Verify compares the schema with what this program needs, and looks for the subscription.
func (s *Subscription) Verify(ctx context.Context) error {
	if err := s.stream.CheckSchema(ctx, s.pool); err != nil {
		return err
	}
	return s.exists(ctx)
}

func (s *Subscription) exists(ctx context.Context) error {
	_, err := s.stream.FindSubscription(ctx, s.pool, s.name)
	return err
}

// Ready refuses a stream whose cursors belong to another history, as after a restore from a dump: they say nothing
// true about its events. See pgstream.ErrRestored.
func (s *Subscription) Ready(ctx context.Context) error {
	if err := s.stream.Check(ctx, s.pool, s.name); err != nil {
		return err
	}
	return s.exists(ctx)
}

// Wake tells relays that there are events.
func (s *Subscription) Wake(ctx context.Context) error { return pgstream.Wake(ctx, s.pool, s.stream) }

// parkedState is the SQL of the state of a parked row p.
const parkedState = `CASE WHEN p.state <> 'retry' THEN p.state WHEN p.next_attempt_at <= now() THEN 'due' WHEN p.attempts > 0 THEN 'retrying' ELSE 'scheduled' END`

// logState is the SQL of the state of a row e of the log; p is its parked row, if it has one.
const logState = `CASE WHEN p.seq IS NOT NULL THEN ` + parkedState + ` WHEN {behind} THEN 'delivered' ELSE 'due' END`

// eventList lists the columns of an event in the order in which scanFound reads them. The alias names the row of the
// event; p is its parked row, if it has one.
func eventList(alias, state string, whole bool) string {
	list := strings.ReplaceAll(`@id, coalesce(@namespace, ''), @topic, @type, coalesce(@key, ''), coalesce(@aggregate_type, ''), coalesce(@aggregate_id, ''),
  coalesce(@tenant_id, '00000000-0000-0000-0000-000000000000'), @not_before, coalesce(@max_attempts, 0), @created_at, @shard, @seq,
  coalesce(p.attempts, 0), coalesce(p.last_error, ''), coalesce(p.reason, ''), p.next_attempt_at, coalesce(p.replayed, false), `, "@", alias+".") + state
	if whole {
		list += strings.ReplaceAll(`, @headers, coalesce(@content_type, ''), @payload, p.parked_at, p.changed_at`, "@", alias+".")
	}
	return list
}

// found is an event with its place in the stream.
type found struct {
	view.Event
	shard             int16
	seq               int64
	parkedAt, changed pgtype.Timestamptz
}

func scanFound(row pgx.CollectableRow, whole bool) (f found, err error) {
	var notBefore, next pgtype.Timestamptz
	dests := []any{
		(*[16]byte)(&f.ID), &f.Namespace, &f.Topic, &f.Type, &f.Key, &f.AggregateType, &f.AggregateID, (*[16]byte)(&f.TenantID),
		&notBefore, &f.MaxAttempts, &f.CreatedAt, &f.shard, &f.seq, &f.Attempts, &f.LastError, &f.Reason, &next, &f.Replayed, &f.State,
	}
	if whole {
		dests = append(dests, &f.Headers, &f.ContentType, &f.Payload, &f.parkedAt, &f.changed)
	}
	if err := row.Scan(dests...); err != nil {
		return f, err
	}
	f.MaxAttempts = cmp.Or(f.MaxAttempts, pgstream.DefaultMaxAttempts)
	if f.State == view.StateDead && f.Reason == string(outbox.ReasonMaxAttempts) {
		f.MaxAttempts = f.Attempts // the relay's maximum, which the database does not record
	}
	f.CreatedAt, f.NotBefore, f.NextAttemptAt = f.CreatedAt.UTC(), query.Moment(notBefore), query.Moment(next)
	return f, nil
}

// conditions is the SQL of a filter on the rows of an alias; state is the SQL of their state.
func conditions(f *view.Filter, alias, state string, args *query.Args) string {
	var list []string
	add := func(column, value string) {
		if value != "" {
			list = append(list, alias+"."+column+" = "+args.Add(value))
		}
	}
	add("namespace", f.Namespace)
	add("topic", f.Topic)
	add("type", f.Type)
	add("aggregate_type", f.AggregateType)
	add("aggregate_id", f.AggregateID)
	add("key", f.Key)
	if f.TenantID != uuid.Nil {
		list = append(list, alias+".tenant_id = "+args.Add([16]byte(f.TenantID)))
	}
	if len(f.IDs) > 0 {
		list = append(list, alias+".id = ANY("+args.Add(pgsession.IDs(f.IDs))+")")
	}
	if f.Error != "" {
		list = append(list, query.NormalSQL("p.last_error")+" = "+args.Add(f.Error))
	}
	if f.State != "" {
		list = append(list, "("+state+") = "+args.Add(string(f.State)))
	}
	if !f.Since.IsZero() {
		list = append(list, alias+".created_at >= "+args.Add(f.Since))
	}
	if !f.Until.IsZero() {
		list = append(list, alias+".created_at < "+args.Add(f.Until))
	}
	return query.And(list...)
}

// mine is the SQL of the subscription's own filter on a row e.
func mine(is *pgstream.Subscription, args *query.Args) string {
	sql, values := streamsql.Filter(is.Filter).Conditions(len(*args) + 1)
	*args = append(*args, values...)
	return sql
}
