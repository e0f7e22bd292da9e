package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestJobUnderWay: what takes long goes on by itself; pages say so, and it can be stopped.
func TestJobUnderWay(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.kill("no", layouttest.Event("modkit"))
	b := newBrowser(t, admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}})
	// A retry begins with its entry in the audit log.
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE outbox_audit IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	token := b.token()
	change := func(method, path, body string) answer {
		t.Helper()
		return b.send(method, "/api/v1/targets/shop/"+path, body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-CSRF-Token", token)
		})
	}
	begun := change("POST", "retry", `{"all":true}`)
	begun.want(t, http.StatusAccepted, `"running":true`)
	var job struct{ ID string }
	if err := json.Unmarshal([]byte(begun.body), &job); err != nil {
		t.Fatal(err)
	}
	page := b.get("/t/shop/events")
	page.want(t, http.StatusOK, "data-running")
	page.want(t, http.StatusOK, "/t/shop/jobs/"+job.ID+"/stop")
	pgtest.AwaitBlocked(t, s.pool, 1)
	b.submit("/t/shop/events", "/t/shop/jobs/"+job.ID+"/stop", url.Values{})
	change("GET", "jobs/"+job.ID, "").want(t, http.StatusOK, `"running":false`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Nothing was done, and can be done now.
	change("POST", "retry", `{"all":true}`).want(t, http.StatusOK, `"events":1`)
	change("DELETE", "jobs/"+job.ID, "").want(t, http.StatusOK, `"running":false`)
}

// TestHold holds a key of a stream, and releases it.
func TestHold(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: newStream(t).Outbox}}, Access: admin.Access{Credentials: newParties(t).Credentials},
	})
	b.logIn("operator")
	b.submit("/t/shop/events", "/t/shop/hold", url.Values{}).want(t, http.StatusBadRequest, "name the events by id, or a key")
	b.submit("/t/shop/events", "/t/shop/hold", url.Values{"key": {"order-1"}}).want(t, http.StatusOK, "held.")
	b.submit("/t/shop/events", "/t/shop/release", url.Values{"key": {"order-1"}}).want(t, http.StatusOK, "released.")
	log := textOf(b.get("/t/shop/audit").body)
	for _, words := range []string{"hold", "release", "operator", "order-1"} {
		if !strings.Contains(log, words) {
			t.Errorf("the audit log lacks %q: %s", words, log)
		}
	}
}
