package ops

import (
	"context"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/ops/view"
)

// Overview returns the outbox's present state.
func (o *Outbox) Overview(ctx context.Context) (*Overview, error) {
	if err := o.backend.Ready(ctx); err != nil {
		return nil, err
	}
	overview := &Overview{ByState: make(map[State]Count), Relays: []Relay{}}
	for _, state := range o.about.States {
		overview.ByState[state] = Count{}
	}
	if err := o.backend.Overview(ctx, overview); err != nil {
		return nil, o.wrap("look at the events", err)
	}
	overview.At = overview.At.UTC()
	return overview, nil
}

// Stats returns the outbox's numbers.
func (o *Outbox) Stats(ctx context.Context) (*Stats, error) {
	overview, err := o.Overview(ctx)
	if err != nil {
		return nil, err
	}
	stats := &Stats{Overview: overview}
	if err := o.backend.Stats(ctx, stats); err != nil {
		return nil, o.wrap("count the events", err)
	}
	return stats, nil
}

// List finds events, newest first, a page at a time.
func (o *Outbox) List(ctx context.Context, filter Filter, page Page) (*Listing, error) {
	size, err := page.size()
	if err != nil {
		return nil, err
	}
	if err := check(&filter, &o.about); err != nil {
		return nil, err
	}
	after, err := view.ParsePosition(page.Cursor)
	if err != nil {
		return nil, err
	}
	if err := o.backend.Ready(ctx); err != nil {
		return nil, err
	}
	listing, err := o.backend.List(ctx, &filter, after, size)
	return listing, o.wrap("list the events", err)
}

// Show returns an event with its history, or ErrNotFound.
func (o *Outbox) Show(ctx context.Context, id uuid.UUID) (*Details, error) {
	if err := o.backend.Ready(ctx); err != nil {
		return nil, err
	}
	people, err := o.log.Moments(ctx, id)
	if err != nil {
		return nil, err
	}
	details, err := o.backend.Show(ctx, id, people)
	if err != nil {
		return nil, o.wrap("read an event", err)
	}
	slices.SortStableFunc(details.Timeline, func(a, b Moment) int { return a.At.Compare(b.At) })
	return details, nil
}

// DeadGroups groups the dead events by their type and their error.
func (o *Outbox) DeadGroups(ctx context.Context) (*DeadGroups, error) {
	if err := o.backend.Ready(ctx); err != nil {
		return nil, err
	}
	groups, err := o.backend.DeadGroups(ctx)
	return groups, o.wrap("group the dead events", err)
}

// Audit lists what people did, newest first. Without the log's table the page is empty and says so.
func (o *Outbox) Audit(ctx context.Context, page Page) (*audit.Page, error) {
	size, err := page.size()
	if err != nil {
		return nil, err
	}
	after, err := view.ParsePosition(page.Cursor)
	if err != nil {
		return nil, err
	}
	before := int64(math.MaxInt64)
	if after != nil {
		before = after.Seq
	}
	entries, exists, err := o.log.List(ctx, before, size+1) // one more, to know whether there is another page
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return &audit.Page{Entries: []audit.Entry{}, Missing: audit.Missing}, nil
	case len(entries) > size:
		return &audit.Page{Entries: entries[:size], Next: view.Position{Walk: "audit", Seq: entries[size-1].ID}.String()}, nil
	}
	return &audit.Page{Entries: entries}, nil
}
