package admin

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/ops"
)

// confirmation is the content of a page that asks before it changes events.
type confirmation struct {
	Operation ops.Operation
	Filter    ops.Filter
	// Hidden are the fields that the form repeats.
	Hidden []filterField
	// Fields are the fields of the form that selects events.
	Fields []filterField
	// Result is what would be done; nil before the first question.
	Result *ops.Result
	// Some are some of the events.
	Some []ops.Event
	// Rate is the rate of a replay.
	Rate string
	// Cannot says why it cannot be done.
	Cannot string
}

func changeOf(operation ops.Operation, values url.Values) (change, error) {
	ch := change{operation: operation, all: values.Get("all") != ""}
	var err error
	if ch.filter, err = parseFilter(values); err != nil {
		return ch, err
	}
	if ch.before, err = parseTime(values.Get("before")); err != nil {
		return ch, badInput(err)
	}
	ch.rate, err = parseRate(values.Get("rate"))
	return ch, err
}

func (c *Console) retryPreview(w http.ResponseWriter, r *request) error {
	ch, err := changeOf(ops.OperationRetry, r.URL.Query())
	if err != nil {
		return err
	}
	content := &confirmation{Operation: ch.operation, Filter: ch.filter}
	if err := c.count(r, ch, ops.StateDead, content); err != nil {
		return err
	}
	return c.render(w, r, http.StatusOK, "retry", "Retry", content)
}

// replayPage asks which events to replay, and shows a preview.
func (c *Console) replayPage(w http.ResponseWriter, r *request) error {
	ch, err := changeOf(ops.OperationReplay, r.URL.Query())
	if err != nil {
		return err
	}
	content := &confirmation{
		Operation: ch.operation, Filter: ch.filter, Fields: r.outbox.filterFields(&ch.filter), Rate: strings.TrimSpace(r.URL.Query().Get("rate")),
	}
	content.Cannot, _ = r.outbox.cannot(ch.operation)
	if r.URL.Query().Get("preview") != "" && content.Cannot == "" {
		if err := c.count(r, ch, ops.StateDelivered, content); err != nil {
			return err
		}
	}
	return c.render(w, r, http.StatusOK, "replay", "Replay", content)
}

// count counts what a change would change, and shows some of it.
func (c *Console) count(r *request, ch change, state ops.State, content *confirmation) error {
	var err error
	if content.Result, err = c.preview(r, ch); err != nil {
		return err
	}
	some := ch.filter
	some.State = state
	list, err := r.outbox.List(r.Context(), some, ops.Page{Size: 10})
	if err != nil {
		return err
	}
	content.Some = list.Events
	for name, values := range filterValues(&ch.filter) {
		for _, value := range values {
			content.Hidden = append(content.Hidden, filterField{Name: name, Value: value})
		}
	}
	if ch.all {
		content.Hidden = append(content.Hidden, filterField{Name: "all", Value: "1"})
	}
	return nil
}

// acts answers forms for one operation. It makes the change and redirects to a page that shows it.
func acts(operation ops.Operation) answer {
	return func(c *Console, w http.ResponseWriter, r *request) error {
		ch, err := changeOf(operation, r.PostForm)
		if err != nil {
			return err
		}
		begun, err := c.begin(r, ch)
		if err != nil {
			return err
		}
		to := c.base(r.outbox) + "/"
		switch {
		case len(ch.filter.IDs) == 1:
			to += "events/" + ch.filter.IDs[0].String()
		case operation == ops.OperationRetry:
			to += "dead"
		case operation == ops.OperationReplay:
			to += "replay"
		default:
			to += "events"
		}
		seeOther(w, to+"?job="+begun.id)
		return nil
	}
}

func (c *Console) stopJob(w http.ResponseWriter, r *request) error {
	stopped, err := r.stopJob()
	if err != nil {
		return err
	}
	seeOther(w, c.base(r.outbox)+"/?job="+stopped.id)
	return nil
}

// stopJob interrupts the change that the path names. What is done stays done.
func (r *request) stopJob() (*job, error) {
	found, err := r.job()
	if err == nil {
		found.stop()
		found.await(r.Context())
	}
	return found, err
}

// job finds the change that the path names.
func (r *request) job() (*job, error) {
	if found := r.outbox.jobs.find(r.PathValue("job")); found != nil {
		return found, nil
	}
	return nil, notFound("That change is forgotten; the audit log has it.")
}
