package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/ops"
)

type eventList struct {
	*ops.Listing
	Filter ops.Filter
	// Query is the searched text; By is what it was found as.
	Query, By string
	// Fields are the parts of the filter that the outbox has.
	Fields []filterField
	// NextURL is the next page; RetryURL and ReplayURL retry or replay all that the filter finds.
	NextURL, RetryURL, ReplayURL string
	// First is set on the first page.
	First bool
}

type filterField struct {
	Name, Label, Value string
	// Advanced fields are folded away.
	Advanced bool
}

func (c *Console) eventsPage(w http.ResponseWriter, r *request) error {
	values := r.URL.Query()
	filter, err := parseFilter(values)
	if err != nil {
		return err
	}
	page, err := parsePage(values)
	if err != nil {
		return err
	}
	list := &eventList{Query: strings.TrimSpace(values.Get("q")), First: page.Cursor == ""}
	if list.Query == "" {
		list.Filter = filter
		list.Listing, err = r.outbox.List(r.Context(), filter, page)
	} else {
		err = r.outbox.search(r.Context(), list, page)
	}
	if err != nil {
		return err
	}
	if list.Query != "" && len(list.Filter.IDs) == 1 && len(list.Events) == 1 {
		seeOther(w, c.base(r.outbox)+"/events/"+list.Events[0].ID.String())
		return nil
	}
	list.Fields = r.outbox.filterFields(&list.Filter)
	list.address(c.base(r.outbox))
	return c.render(w, r, http.StatusOK, "events", "Events", list)
}

// search looks for a typed text as an id, a tenant, a key or an aggregate, and takes the first that finds
// something.
func (t *shown) search(ctx context.Context, list *eventList, page ops.Page) (err error) {
	for _, try := range t.guesses(list.Query) {
		list.Filter, list.By = try.filter, try.by
		list.Listing, err = t.List(ctx, try.filter, page)
		if errors.Is(err, ops.ErrFilter) {
			continue // the text cannot mean this
		}
		if err != nil || len(list.Events) > 0 {
			return err
		}
	}
	list.By, list.Filter, list.Listing = "", ops.Filter{}, &ops.Listing{}
	return nil
}

type guess struct {
	by     string
	filter ops.Filter
}

// guesses returns what a text can mean, likeliest first.
func (t *shown) guesses(text string) []guess {
	var all []guess
	add := func(field ops.Field, by string, filter ops.Filter) {
		if t.about.Has(field) {
			all = append(all, guess{by, filter})
		}
	}
	if id, err := uuid.Parse(text); err == nil {
		all = append(all, guess{"id", ops.Filter{IDs: []uuid.UUID{id}}})
		add(ops.FieldTenant, "tenant", ops.Filter{TenantID: id})
	}
	add(ops.FieldKey, "key", ops.Filter{Key: text})
	if kind, id, ok := strings.Cut(text, "/"); ok {
		add(ops.FieldAggregate, "aggregate", ops.Filter{AggregateType: kind, AggregateID: id})
	}
	add(ops.FieldAggregate, "aggregate id", ops.Filter{AggregateID: text})
	add(ops.FieldType, "type", ops.Filter{Type: text})
	return all
}

// filterFields returns the fields of the form with their values.
func (t *shown) filterFields(f *ops.Filter) []filterField {
	values := filterValues(f)
	var fields []filterField
	for _, one := range []struct {
		field       ops.Field
		name, label string
		advanced    bool
	}{
		{ops.FieldType, "type", "Type", false},
		{ops.FieldTopic, "topic", "Topic", false},
		{ops.FieldKey, "key", "Key", false},
		{ops.FieldAggregate, "aggregateType", "Aggregate type", true},
		{ops.FieldAggregate, "aggregateId", "Aggregate id", true},
		{ops.FieldTenant, "tenantId", "Tenant", true},
		{ops.FieldNamespace, "namespace", "Namespace", true},
		{ops.FieldError, "error", "Error", true},
	} {
		if t.about.Has(one.field) {
			fields = append(fields, filterField{one.name, one.label, values.Get(one.name), one.advanced})
		}
	}
	return fields
}

// Advanced reports whether a folded field is in use, so that it is not hidden.
func (l *eventList) Advanced() bool {
	inUse := func(field filterField) bool { return field.Advanced && field.Value != "" }
	return slices.ContainsFunc(l.Fields, inUse) || !l.Filter.Since.IsZero() || !l.Filter.Until.IsZero()
}

// Selectable reports whether the list has events that can be selected for a retry.
func (l *eventList) Selectable() bool {
	return slices.ContainsFunc(l.Events, func(e ops.Event) bool { return e.State == ops.StateDead })
}

func (l *eventList) address(base string) {
	values := filterValues(&l.Filter)
	if l.Query != "" {
		values = url.Values{"q": {l.Query}}
	}
	if l.Next != "" {
		values.Set("cursor", l.Next)
		l.NextURL = base + "/events?" + values.Encode()
	}
	if !l.Filter.Empty() {
		values = filterValues(&l.Filter)
		values.Del("state")
		switch l.Filter.State {
		case ops.StateDead:
			l.RetryURL = base + "/retry?" + values.Encode()
		case ops.StateDelivered:
			l.ReplayURL = base + "/replay?preview=1&" + values.Encode()
		}
	}
}
