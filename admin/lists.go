package admin

import (
	"net/http"
	"net/url"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
)

type deadGroup struct {
	ops.DeadGroup
	EventsURL, RetryURL string
}

func (c *Console) deadPage(w http.ResponseWriter, r *request) error {
	found, err := r.outbox.DeadGroups(r.Context())
	if err != nil {
		return err
	}
	groups := make([]deadGroup, len(found.Groups))
	for i, group := range found.Groups {
		values := filterValues(&ops.Filter{Type: group.Type, Error: group.Error})
		if group.Type == "" {
			values = filterValues(&ops.Filter{Topic: group.Topic, Error: group.Error})
		}
		groups[i] = deadGroup{DeadGroup: group, RetryURL: c.base(r.outbox) + "/retry?" + values.Encode()}
		values.Set("state", string(ops.StateDead))
		groups[i].EventsURL = c.base(r.outbox) + "/events?" + values.Encode()
	}
	return c.render(w, r, http.StatusOK, "dead", "Dead letters", struct {
		*ops.DeadGroups
		Rows []deadGroup
	}{found, groups})
}

func (c *Console) relaysPage(w http.ResponseWriter, r *request) error {
	found, _, err := r.outbox.samples.watch(r.Context())
	if err != nil {
		return err
	}
	return c.render(w, r, http.StatusOK, "relays", "Relays", found)
}

func (c *Console) auditPage(w http.ResponseWriter, r *request) error {
	log, err := c.audit(r)
	if err != nil {
		return err
	}
	next := ""
	if log.Next != "" {
		next = c.base(r.outbox) + "/audit?" + url.Values{"cursor": {log.Next}}.Encode()
	}
	return c.render(w, r, http.StatusOK, "audit", "Audit log", struct {
		*audit.Page
		NextURL string
	}{log, next})
}

// audit reads the page of the audit log named in the address.
func (c *Console) audit(r *request) (*audit.Page, error) {
	page, err := parsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return r.outbox.Audit(r.Context(), page)
}
