package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/httpapi"
	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bench is the api on a database of its own.
type bench struct {
	*testing.T
	pool *pgxpool.Pool
	api  http.Handler
}

func newBench(t *testing.T) *bench {
	t.Helper()
	_, pool := backendtest.Database(t)
	return &bench{t, pool, httpapi.New(backendtest.Licensing(t, pool), slog.New(slog.DiscardHandler))}
}

// want sends a request and compares the status. It returns the answer, which must be a JSON object.
func (b *bench) want(status int, method, path, body string) (answer map[string]any) {
	b.Helper()
	b.ask(&answer, status, method, path, body)
	if (status >= http.StatusBadRequest) != (answer["error"] != nil) {
		b.Errorf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// ask sends a request, compares the status and decodes the answer.
func (b *bench) ask(answer any, status int, method, path, body string) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-User-ID", "ada")
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	text := w.Body.String()
	if w.Code != status || w.Header().Get("Content-Type") != "application/json" {
		b.Errorf("%s %s: %d %s, want %d", method, path, w.Code, text, status)
	}
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		b.Fatalf("%s %s: %q is not the JSON that was expected: %v", method, path, text, err)
	}
}

// TestLifeOfALicense goes through all requests, and sends each twice.
func TestLifeOfALicense(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	store := "/v1/stores/" + uuid.NewString()
	approved, rejected := uuid.NewString(), uuid.NewString()
	for i, created := range []int{http.StatusCreated, http.StatusOK} {
		b.want(created, http.MethodPut, store, `{"name": "Green Leaf"}`)
		b.want(created, http.MethodPut, store+"/licenses/"+approved, `{"number": "C11-1"}`)
		b.want(created, http.MethodPut, store+"/licenses/"+rejected, `{"number": "C11-2"}`)
		b.want(http.StatusOK, http.MethodPost, "/v1/licenses/"+approved+"/approve", "")
		answer := b.want(http.StatusOK, http.MethodPost, "/v1/licenses/"+rejected+"/reject", `{"reason": "expired"}`)
		if answer["status"] != "rejected" || answer["reason"] != "expired" || answer["id"] != rejected {
			t.Errorf("time %d: %v", i, answer)
		}
	}
	if answer := b.want(http.StatusOK, http.MethodGet, "/v1/licenses/"+approved, ""); answer["status"] != "verified" {
		t.Errorf("%v, want it verified", answer)
	}
	events := backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_events WHERE payload_json #>> '{actor,id}' = 'ada'`)
	if events != 4 {
		t.Errorf("%d events, want 4: two uploads and two decisions", events)
	}
}

// TestNotifications reads what was told about a licence, and of nothing else.
func TestNotifications(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	license := uuid.New()
	for _, about := range []uuid.UUID{license, uuid.New()} {
		testdb.Exec(t, b.pool, `INSERT INTO notifications (event_id, type, audience, store_id, license_id, status, reason, message)
			VALUES (gen_random_uuid(), 'compliance', 'store', gen_random_uuid(), $1, 'rejected', 'expired', 'Your licence was rejected: expired')`, about)
	}
	var told []licensing.Notification
	b.ask(&told, http.StatusOK, http.MethodGet, "/v1/licenses/"+license.String()+"/notifications", "")
	if len(told) != 1 || told[0].LicenseID != license || told[0].Status != "rejected" || told[0].Reason != "expired" || told[0].Audience != "store" {
		t.Errorf("told %+v", told)
	}
	b.ask(&told, http.StatusOK, http.MethodGet, "/v1/licenses/"+uuid.NewString()+"/notifications", "")
	if told == nil || len(told) != 0 {
		t.Errorf("%+v was told about nothing", told)
	}
}

// TestRefusals has requests that are answered with an error, in JSON, and change nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	store, license := "/v1/stores/"+uuid.NewString(), uuid.NewString()
	b.want(http.StatusCreated, http.MethodPut, store, `{"name": "Green Leaf"}`)
	b.want(http.StatusCreated, http.MethodPut, store+"/licenses/"+license, `{"number": "C11-1"}`)
	reject := "/v1/licenses/" + license + "/reject"
	for name, c := range map[string]struct {
		status             int
		method, path, body string
	}{
		"no JSON":         {http.StatusBadRequest, http.MethodPost, reject, `reason`},
		"no body":         {http.StatusBadRequest, http.MethodPost, reject, ``},
		"another type":    {http.StatusBadRequest, http.MethodPost, reject, `{"reason": 7}`},
		"another field":   {http.StatusBadRequest, http.MethodPost, reject, `{"reason": "a", "because": "b"}`},
		"two objects":     {http.StatusBadRequest, http.MethodPost, reject, `{"reason": "a"} {}`},
		"no reason":       {http.StatusBadRequest, http.MethodPost, reject, `{}`},
		"a NUL":           {http.StatusBadRequest, http.MethodPost, reject, `{"reason": "a\u0000"}`},
		"a large body":    {http.StatusRequestEntityTooLarge, http.MethodPost, reject, `{"reason": "` + strings.Repeat("a", 20_000) + `"}`},
		"no UUID":         {http.StatusBadRequest, http.MethodPost, "/v1/licenses/7/approve", ``},
		"another form":    {http.StatusBadRequest, http.MethodPost, "/v1/licenses/" + strings.ToUpper(license) + "/approve", ``},
		"the zero UUID":   {http.StatusBadRequest, http.MethodPut, "/v1/stores/" + uuid.Nil.String(), `{"name": "a"}`},
		"no such licence": {http.StatusNotFound, http.MethodPost, "/v1/licenses/" + uuid.NewString() + "/approve", ``},
		"no such store":   {http.StatusNotFound, http.MethodPut, "/v1/stores/" + uuid.NewString() + "/licenses/" + uuid.NewString(), `{"number": "1"}`},
		"another number":  {http.StatusConflict, http.MethodPut, store + "/licenses/" + license, `{"number": "C11-2"}`},
		"no such path":    {http.StatusNotFound, http.MethodGet, "/v1/orders", ``},
	} {
		if answer := b.want(c.status, c.method, c.path, c.body); answer["error"] == "" {
			t.Errorf("%s: %v says nothing", name, answer)
		}
	}
	if answer := b.want(http.StatusOK, http.MethodGet, "/v1/licenses/"+license, ""); answer["status"] != "pending" {
		t.Errorf("%v, want it pending", answer)
	}
}

// TestFailureIsNotTold has a database that fails: the client learns that it may try again, and nothing of the reason.
func TestFailureIsNotTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	testdb.Exec(t, b.pool, `DROP TABLE licenses`)
	answer := b.want(http.StatusInternalServerError, http.MethodGet, "/v1/licenses/"+uuid.NewString(), "")
	if strings.Contains(answer["error"].(string), "licenses") {
		t.Errorf("told: %v", answer)
	}
}
