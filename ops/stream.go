package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

// subscription is a subscription of a stream.
type subscription struct {
	pool        *pgxpool.Pool
	stream      pgstream.Stream
	name        string
	description Description
	log         auditLog
}

// Stream is a subscription of a stream; empty is the default one. It does not connect.
func Stream(pool *pgxpool.Pool, stream pgstream.Stream, name string) (Target, error) {
	if err := stream.Validate(); err != nil {
		return nil, err
	}
	if name == "" {
		name = pgstream.DefaultSubscription
	}
	s := &subscription{pool: pool, stream: stream, name: name}
	s.description = Description{
		Name: pgstream.LayoutName + "/" + name, Kind: KindStream, Layout: pgstream.LayoutName, Table: "outbox_stream", Subscription: name,
		Fields: []Field{FieldID, FieldNamespace, FieldTopic, FieldType, FieldAggregate, FieldKey, FieldTenant, FieldError},
		States: []State{StateDue, StateScheduled, StateRetrying, StateWaiting, StateStopped, StateHeld, StateDead, StateDelivered},
		Cannot: map[Operation]string{},
	}
	s.log = auditLog{pool: pool, schema: stream.Schema, target: s.description.Name}
	return s, nil
}

// Describe says what the subscription has and can do.
func (s *subscription) Describe() Description { return s.description }

// Audit lists what was done to the subscription's events.
func (s *subscription) Audit(ctx context.Context, page Page) (*AuditLog, error) {
	return s.log.page(ctx, page)
}

// check refuses to look at events of which the cursors say nothing true, as in a stream that was
// restored from a dump; see pgstream.ErrRestored.
func (s *subscription) check(ctx context.Context) error { return s.stream.Check(ctx, s.pool, s.name) }

// wrap says what could not be done.
func (s *subscription) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbox: %s of subscription %q: %w", doing, s.name, err)
}

// parkedState is the state of a parked row p, as people know it.
const parkedState = `CASE WHEN p.state <> 'retry' THEN p.state WHEN p.next_attempt_at <= now() THEN 'due' WHEN p.attempts > 0 THEN 'retrying' ELSE 'scheduled' END`

// logState is the state of a row e of the log, of which p is what is parked.
const logState = `CASE WHEN p.seq IS NOT NULL THEN ` + parkedState + ` WHEN {behind} THEN 'delivered' ELSE 'due' END`

// eventList are the columns of an event, in the order in which scanParked reads them: alias has
// the event, and p what is parked of it, if anything is.
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
	Event
	shard             int16
	seq               int64
	parkedAt, changed pgtype.Timestamptz
}

func scanFound(row pgx.CollectableRow, whole bool, more ...any) (f found, err error) {
	var notBefore, next pgtype.Timestamptz
	dests := []any{
		(*[16]byte)(&f.ID), &f.Namespace, &f.Topic, &f.Type, &f.Key, &f.AggregateType, &f.AggregateID, (*[16]byte)(&f.TenantID),
		&notBefore, &f.MaxAttempts, &f.CreatedAt, &f.shard, &f.seq, &f.Attempts, &f.LastError, &f.Reason, &next, &f.Replayed, &f.State,
	}
	if whole {
		dests = append(dests, &f.Headers, &f.ContentType, &f.Payload, &f.parkedAt, &f.changed)
	}
	if err := row.Scan(append(dests, more...)...); err != nil {
		return f, err
	}
	if f.MaxAttempts == 0 {
		f.MaxAttempts = pgstream.DefaultMaxAttempts
	}
	if f.State == StateDead && f.Reason == string(outbox.ReasonMaxAttempts) {
		f.MaxAttempts = f.Attempts // it was the relay's, which the database does not know
	}
	f.CreatedAt, f.NotBefore, f.NextAttemptAt = f.CreatedAt.UTC(), moment(notBefore), moment(next)
	return f, nil
}

// conditions are a filter on the events of an alias; state is their state.
func conditions(f *Filter, alias, state string, args *arguments) string {
	var list []string
	add := func(column, value string) {
		if value != "" {
			list = append(list, alias+"."+column+" = "+args.add(value))
		}
	}
	add("namespace", f.Namespace)
	add("topic", f.Topic)
	add("type", f.Type)
	add("aggregate_type", f.AggregateType)
	add("aggregate_id", f.AggregateID)
	add("key", f.Key)
	if f.TenantID != uuid.Nil {
		list = append(list, alias+".tenant_id = "+args.add([16]byte(f.TenantID)))
	}
	if len(f.IDs) > 0 {
		list = append(list, alias+".id = ANY("+args.add(plainIDs(f.IDs))+")")
	}
	if f.Error != "" {
		list = append(list, normalSQL("p.last_error")+" = "+args.add(f.Error))
	}
	if f.State != "" && state != "" {
		list = append(list, "("+state+") = "+args.add(string(f.State)))
	}
	if !f.Since.IsZero() {
		list = append(list, alias+".created_at >= "+args.add(f.Since))
	}
	if !f.Until.IsZero() {
		list = append(list, alias+".created_at < "+args.add(f.Until))
	}
	if len(list) == 0 {
		return ""
	}
	return both(list...)
}

// mine are the conditions that an event e is the subscription's.
func mine(is *pgstream.Subscription, args *arguments) string {
	sql, values := is.Filter.Conditions(len(*args) + 1)
	*args = append(*args, values...)
	return sql
}

// Show is all that the stream knows of an event.
func (s *subscription) Show(ctx context.Context, id uuid.UUID) (*Details, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	var details *Details
	err := byIndex(ctx, s.pool, func(tx pgx.Tx) (err error) {
		event, err := s.search(ctx, tx, id, true)
		if err != nil {
			return err
		}
		details = &Details{Event: event.Event}
		details.Timeline, err = s.history(ctx, tx, event)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("outbox: %s in subscription %q: %w", id, s.name, err)
	}
	if err != nil {
		return nil, s.wrap("read an event", err)
	}
	people, err := s.log.moments(ctx, id)
	if err != nil {
		return nil, err
	}
	details.Timeline = inOrder(append(details.Timeline, people...))
	for _, m := range details.Timeline {
		if details.State == StateDelivered && m.What == "delivered" {
			details.DeliveredAt = m.At
		}
	}
	return details, nil
}
