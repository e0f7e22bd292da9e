package admin

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/ops"
)

// parseFilter reads a filter from a form or an address. Ids may be given several times.
func parseFilter(values url.Values) (ops.Filter, error) {
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	f := ops.Filter{State: ops.State(get("state")), Error: values.Get("error")}
	for name, field := range textFields(&f) {
		*field = get(name)
	}
	for _, text := range values["id"] {
		for _, one := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
			id, err := uuid.Parse(one)
			if err != nil {
				return f, badInput(fmt.Errorf("%q is not the id of an event: it must be a UUID", one))
			}
			f.IDs = append(f.IDs, id)
		}
	}
	if text := get("tenantId"); text != "" {
		var err error
		if f.TenantID, err = uuid.Parse(text); err != nil {
			return f, badInput(fmt.Errorf("the tenant %q is not a UUID", text))
		}
	}
	var since, until error
	f.Since, since = parseTime(get("since"))
	f.Until, until = parseTime(get("until"))
	if err := errors.Join(since, until); err != nil {
		return f, badInput(err)
	}
	return f, nil
}

// textFields returns the text fields of a filter by their names in forms and addresses.
func textFields(f *ops.Filter) map[string]*string {
	return map[string]*string{
		"namespace": &f.Namespace, "topic": &f.Topic, "type": &f.Type,
		"aggregateType": &f.AggregateType, "aggregateId": &f.AggregateID, "key": &f.Key,
	}
}

// parseTime reads a time as a program writes it, or as a browser's field does; the latter is UTC, like all times of
// the console.
func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write it as 2026-03-01T12:00:00Z", text)
}

// filterValues returns a filter as an address; parseFilter reads it.
func filterValues(f *ops.Filter) url.Values {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	for _, id := range f.IDs {
		values.Add("id", id.String())
	}
	set("state", string(f.State))
	set("error", f.Error)
	for name, field := range textFields(f) {
		set(name, *field)
	}
	if f.TenantID != uuid.Nil {
		set("tenantId", f.TenantID.String())
	}
	if !f.Since.IsZero() {
		set("since", f.Since.Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		set("until", f.Until.Format(time.RFC3339Nano))
	}
	return values
}

// maxPage is how many entries a page of the console may have.
const maxPage = 200

func parsePage(values url.Values) (ops.Page, error) {
	page := ops.Page{Cursor: values.Get("cursor")}
	if text := values.Get("size"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > maxPage {
			return page, badInput(fmt.Errorf("the page's size %q is not a number from 1 to %d", text, maxPage))
		}
		page.Size = size
	}
	return page, nil
}

// parseRate reads a rate in events per second; empty for no limit.
func parseRate(text string) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	rate, err := strconv.Atoi(text)
	if err != nil || rate < 0 {
		return 0, badInput(fmt.Errorf("the rate %q is not a number of events per second", text))
	}
	return rate, nil
}
