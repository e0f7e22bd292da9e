package emit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlstate"
)

// maxPayloadCeiling is what PostgreSQL can hold in one jsonb string.
const maxPayloadCeiling = 256 << 20

// conflictRounds bounds how often a row that vanished between the conflict and the
// look-up (it was purged in between) is inserted anew.
const conflictRounds = 3

// Conn runs statements in the caller's transaction. Each driver has one.
type Conn interface {
	// Exec runs a statement and reports the rows affected.
	Exec(ctx context.Context, sql string, args []any) (int64, error)
	// Query runs a statement and calls row for each row of the answer.
	Query(ctx context.Context, sql string, args []any, row func(scan func(dest ...any) error) error) error
	// Array gives values ([]string, []*string, []pgtype.UUID or [][]byte) the form the driver
	// takes for an array.
	Array(values any) any
}

// Emitter writes events to one target.
type Emitter struct {
	plan   *Plan
	config outbox.EmitConfig
}

// New compiles the target and fills in the defaults.
func New(target outbox.Target, config outbox.EmitConfig) (*Emitter, error) {
	plan, err := planOf(target)
	if err != nil {
		return nil, err
	}
	e := &Emitter{plan: plan, config: config}
	e.config.MaxPayload = cmp.Or(e.config.MaxPayload, outbox.DefaultMaxPayload)
	if e.config.MaxPayload < 0 || e.config.MaxPayload > maxPayloadCeiling {
		return nil, fmt.Errorf("outbox: EmitConfig.MaxPayload is %d; it must be between 1 and %d",
			e.config.MaxPayload, maxPayloadCeiling)
	}
	if e.config.Serialize && plan.Lock == "" {
		return nil, fmt.Errorf("outbox: EmitConfig.Serialize is set, but %s keeps no order per key; emit to the stream, or leave it out",
			plan.Target)
	}
	return e, nil
}

// Nudge tells a relay in this process that something was committed. What it does
// is no concern of the caller, whose transaction is already safe.
func (e *Emitter) Nudge() {
	if e.config.Nudge == nil {
		return
	}
	defer func() { _ = recover() }()
	e.config.Nudge()
}

// Emit writes one event.
func (e *Emitter) Emit(ctx context.Context, conn Conn, ev outbox.Event) (outbox.Emitted, error) {
	fresh, err := e.prepare(0, &ev)
	if err != nil {
		return outbox.Emitted{}, err
	}
	if err := e.lock(ctx, conn, ev); err != nil {
		return outbox.Emitted{}, err
	}
	statement, columns := e.plan.Insert, e.plan.Columns
	if fresh {
		statement, columns = e.plan.InsertNew, e.plan.NewColumns
	}
	args := make([]any, len(columns))
	for i, column := range columns {
		args[i] = column.value(&ev)
	}
	for range conflictRounds {
		inserted, err := conn.Exec(ctx, statement, args)
		if err != nil {
			return outbox.Emitted{}, fmt.Errorf("outbox: emit event %s: %w", ev.ID, sqlstate.ExplainMissing(err, e.plan.Layout))
		}
		if inserted > 0 {
			return outbox.Emitted{ID: ev.ID}, nil
		}
		found, err := e.find(ctx, conn, []*outbox.Event{&ev})
		if err != nil {
			return outbox.Emitted{}, err
		}
		if id, ok := found[0]; ok {
			return outbox.Emitted{ID: id, AlreadyEnqueued: true}, nil
		}
	}
	return outbox.Emitted{}, e.foreignConflict(&ev)
}

// EmitMany writes many events in one statement. Either all are taken or, with an
// error, the caller's transaction is to be rolled back; a refused event (an
// *outbox.EventError) is found before anything is sent.
func (e *Emitter) EmitMany(ctx context.Context, conn Conn, events []outbox.Event) ([]outbox.Emitted, error) {
	if len(events) == 0 {
		return nil, nil
	}
	events = slices.Clone(events)
	pending := make([]int, len(events))
	allFresh := true
	for i := range events {
		fresh, err := e.prepare(i, &events[i])
		if err != nil {
			return nil, err
		}
		allFresh = allFresh && fresh
		pending[i] = i
	}
	if err := e.lock(ctx, conn, events...); err != nil {
		return nil, err
	}
	if allFresh {
		return e.insertFresh(ctx, conn, events)
	}
	if e.plan.SortByDedupe {
		slices.SortStableFunc(pending, func(a, b int) int { return compareDedupe(&events[a], &events[b]) })
	}
	results := make([]outbox.Emitted, len(events))
	for range conflictRounds {
		missed, err := e.insertMany(ctx, conn, events, pending, results)
		if err != nil {
			return nil, fmt.Errorf("outbox: emit %d events: %w", len(events), sqlstate.ExplainMissing(err, e.plan.Layout))
		}
		if len(missed) == 0 {
			return results, nil
		}
		found, err := e.find(ctx, conn, pick(events, missed))
		if err != nil {
			return nil, err
		}
		pending = pending[:0]
		for place, i := range missed {
			if id, ok := found[place]; ok {
				results[i] = outbox.Emitted{ID: id, AlreadyEnqueued: true}
			} else {
				pending = append(pending, i)
			}
		}
		if len(pending) == 0 {
			return results, nil
		}
	}
	return nil, e.foreignConflict(&events[pending[0]])
}

// lock waits until no other transaction can emit events of the same keys, where that was
// asked for: their order is then that of the commits. It has to be had before the INSERT
// gives an event its place.
func (e *Emitter) lock(ctx context.Context, conn Conn, events ...outbox.Event) error {
	if !e.config.Serialize {
		return nil
	}
	keys := make([]string, 0, len(events))
	for i := range events {
		if events[i].Key != "" {
			keys = append(keys, events[i].Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, e.plan.Lock, []any{conn.Array(keys)}); err != nil {
		return fmt.Errorf("outbox: lock the keys of %d events: %w", len(events), err)
	}
	return nil
}

// insertFresh inserts events that can meet no conflict.
func (e *Emitter) insertFresh(ctx context.Context, conn Conn, events []outbox.Event) ([]outbox.Emitted, error) {
	results := make([]outbox.Emitted, len(events))
	rows := make([]*outbox.Event, len(events))
	for i := range events {
		rows[i] = &events[i]
		results[i].ID = events[i].ID
	}
	if _, err := conn.Exec(ctx, e.plan.InsertManyNew, values(conn, e.plan.NewColumns, rows)); err != nil {
		return nil, fmt.Errorf("outbox: emit %d events: %w", len(events), sqlstate.ExplainMissing(err, e.plan.Layout))
	}
	return results, nil
}

// values are the arguments of a statement that inserts many events.
func values(conn Conn, columns []Column, rows []*outbox.Event) []any {
	args := make([]any, len(columns))
	for i, column := range columns {
		if value, ok := column.shared(rows); ok {
			args[i] = conn.Array([]string{value})
		} else {
			args[i] = column.values(conn, rows)
		}
	}
	return args
}

// insertMany inserts the pending events and returns those that met a conflict.
func (e *Emitter) insertMany(
	ctx context.Context, conn Conn, events []outbox.Event, pending []int, results []outbox.Emitted,
) (missed []int, err error) {
	inserted := make(map[uuid.UUID]bool, len(pending))
	sent := make([]int, 0, len(pending))
	for _, i := range pending {
		if _, repeated := inserted[events[i].ID]; !repeated {
			inserted[events[i].ID] = false
			sent = append(sent, i)
		}
	}
	args := values(conn, e.plan.Columns, pick(events, sent))
	err = conn.Query(ctx, e.plan.InsertMany, args, func(scan func(...any) error) error {
		var id uuid.UUID
		if err := scan(&id); err != nil {
			return err
		}
		inserted[id] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, i := range pending {
		id := events[i].ID
		if !inserted[id] {
			missed = append(missed, i)
			continue
		}
		// The same id twice in one call: the first is the row, the second a repeat.
		inserted[id] = false
		results[i] = outbox.Emitted{ID: id}
	}
	return missed, nil
}

// find looks up the rows that were there first, by place in rows.
func (e *Emitter) find(ctx context.Context, conn Conn, rows []*outbox.Event) (map[int]uuid.UUID, error) {
	args := make([]any, len(e.plan.FindColumns))
	for i, column := range e.plan.FindColumns {
		args[i] = e.plan.Columns[column].values(conn, rows)
	}
	found := make(map[int]uuid.UUID, len(rows))
	err := conn.Query(ctx, e.plan.Find, args, func(scan func(...any) error) error {
		var place int64
		var id uuid.UUID
		if err := scan(&place, &id); err != nil {
			return err
		}
		found[int(place)-1] = id
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: look up the events that were already enqueued: %w", err)
	}
	return found, nil
}

// prepare fills in defaults and an id, and refuses what the target cannot take. fresh is
// true for an event that nothing in the table can equal.
func (e *Emitter) prepare(index int, ev *outbox.Event) (fresh bool, err error) {
	if ev.Namespace == "" && e.plan.Fields.Namespace.Stored {
		ev.Namespace = e.config.DefaultNamespace
	}
	if ev.Topic == "" && e.plan.Fields.Topic.Stored {
		ev.Topic = e.config.DefaultTopic
	}
	if ev.Key == "" && e.plan.KeyFromAggregate && ev.AggregateType != "" && ev.AggregateID != "" {
		ev.Key = ev.AggregateType + "/" + ev.AggregateID
	}
	if refused := e.plan.check(ev, e.config.MaxPayload); refused != nil {
		return false, &outbox.EventError{Index: index, Field: refused.field, Problem: refused.problem}
	}
	fresh = ev.ID == uuid.Nil && ev.DedupeKey == ""
	if ev.ID == uuid.Nil {
		if ev.ID, err = uuid.NewV7(); err != nil {
			return false, fmt.Errorf("outbox: make an event id: %w", err)
		}
	}
	if ev.DedupeKey == "" && e.plan.DedupeFromID {
		ev.DedupeKey = ev.ID.String()
	}
	ev.MaxAttempts = cmp.Or(ev.MaxAttempts, e.plan.DefaultMaxAttempts)
	return fresh, nil
}

func (e *Emitter) foreignConflict(ev *outbox.Event) error {
	return fmt.Errorf("outbox: emit event %s: a unique constraint of %s refused it, and neither the id nor the "+
		"dedupe key is there; the table has a constraint the layout does not know", ev.ID, e.plan.Target)
}

// compareDedupe orders events by what may be unique about them, the same way in every
// transaction. A dedupe key is unique within a namespace, a topic or a type.
func compareDedupe(a, b *outbox.Event) int {
	return cmp.Or(
		cmp.Compare(a.DedupeKey, b.DedupeKey),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Topic, b.Topic),
		cmp.Compare(a.Type, b.Type),
		bytes.Compare(a.ID[:], b.ID[:]))
}

func pick(events []outbox.Event, places []int) []*outbox.Event {
	rows := make([]*outbox.Event, len(places))
	for i, place := range places {
		rows[i] = &events[place]
	}
	return rows
}
