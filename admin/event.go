package admin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/ops"
)

type eventDetails struct {
	*ops.Details
	// Masked is set if the caller may not see payload and headers.
	Masked      bool
	Body        payload
	HeaderNames []string
	// Holdable is set if the event can be held in its state.
	Holdable bool
}

func (c *Console) eventPage(w http.ResponseWriter, r *request) error {
	details, err := r.show()
	if err != nil {
		return err
	}
	content := &eventDetails{
		Details: details, Masked: c.masked(r), HeaderNames: slices.Sorted(maps.Keys(details.Headers)),
		Holdable: slices.Contains([]ops.State{ops.StateRetrying, ops.StateWaiting, ops.StateStopped, ops.StateScheduled, ops.StateDue}, details.State),
	}
	if !content.Masked {
		content.Body = newPayload(details.Payload)
	}
	title := cmp.Or(details.Type, details.Topic)
	return c.render(w, r, http.StatusOK, "event", "Event "+title, content)
}

// show finds the event named in the path.
func (r *request) show() (*ops.Details, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, notFound("%q is not the id of an event: it must be a UUID.", cut(100, r.PathValue("id")))
	}
	return r.outbox.Show(r.Context(), id)
}

func (c *Console) masked(r *request) bool { return c.access.MaskPayloads && !r.operator() }
