package admin_test

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// TestEveryOutbox: every page and every address of the API answers on every kind of outbox,
// empty as they are.
func TestEveryOutbox(t *testing.T) {
	t.Parallel()
	var outboxes []admin.Outbox
	for _, shipped := range shipped.All() {
		pool := pgtest.Pool(t)
		migrate(t, pool, func() (fs.FS, error) { return shipped.Migrations(shipped.Layout) })
		events, err := ops.Table(pool, shipped.Layout)
		if err != nil {
			t.Fatal(err)
		}
		outboxes = append(outboxes, admin.Outbox{Name: shipped.Layout.Name, Outbox: events})
	}
	pool := pgtest.Pool(t)
	migrate(t, pool, func() (fs.FS, error) { return pgstream.Migrations(pgstream.Shape{}) })
	events, err := ops.Stream(pool, pgstream.Stream{}, "")
	if err != nil {
		t.Fatal(err)
	}
	// A name that needs escaping in an address.
	outboxes = append(outboxes, admin.Outbox{Name: "team/shop & co", Outbox: events})
	b := newBrowser(t, admin.Config{Outboxes: outboxes})
	for i := range outboxes {
		name := url.PathEscape(outboxes[i].Name)
		for page, words := range map[string]string{
			"": "Everything is delivered.", "events": "No such events", "events?q=nothing": "Nothing is found", "dead": "No event is dead",
			"retry?all=1": "Nothing to retry", "replay": "Replay", "relays": "Relays", "audit": "Audit log", "doctor": "on PostgreSQL",
			"events/" + uuid.NewString(): "There is no such event",
		} {
			got := b.get("/t/" + name + "/" + page)
			if !strings.Contains(textOf(got.body), words) || got.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s of %s: %d, without %q: %s", page, name, got.StatusCode, words, textOf(got.body))
			}
		}
		for _, address := range []string{"overview", "samples", "events", "dead", "audit", "doctor"} {
			got := b.get("/api/v1/targets/" + name + "/" + address)
			if got.StatusCode != http.StatusOK || !json.Valid([]byte(got.body)) {
				t.Errorf("%s of %s: %d %s", address, name, got.StatusCode, got.body)
			}
		}
	}
}

// TestFind: an event is found by what people know of it, and shown whole.
func TestFind(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	tenant := uuid.New()
	event := layouttest.Event("modkit")
	event.ID, event.TenantID = uuid.Must(uuid.NewV7()), tenant
	event.Payload = []byte(`{"total":12,"note":"<b>bold</b>"}`)
	s.emit(event, layouttest.Event("modkit"))
	s.kill("the card was declined with code 4711", event2(event))
	b := newBrowser(t, admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}})
	page := b.get("/t/shop/events?q=" + event.ID.String())
	page.want(t, http.StatusOK, "&lt;b&gt;bold&lt;/b&gt;")
	if !strings.HasSuffix(page.Request.URL.Path, "/events/"+event.ID.String()) {
		t.Errorf("searching an id leads to %s", page.Request.URL)
	}
	b.get("/t/shop/events?q="+tenant.String()).want(t, http.StatusOK, "found as tenant")
	b.get("/t/shop/events?topic=usage&state=dead").want(t, http.StatusOK, "the card was declined")
	b.get("/t/shop/events?state=nonsense").want(t, http.StatusBadRequest, "never")
	b.get("/t/shop/events?since=yesterday").want(t, http.StatusBadRequest, "is not a time")
	b.get("/t/shop/events?tenantId=7").want(t, http.StatusBadRequest, "not a UUID")
	b.get("/t/shop/events?id=7").want(t, http.StatusBadRequest, "must be a UUID")
	b.get("/t/shop/events?size=100000").want(t, http.StatusBadRequest, "1 to 200")
	b.get("/t/shop/events/7").want(t, http.StatusNotFound, "is not the id")
	b.get("/t/nowhere/events").want(t, http.StatusNotFound, "no outbox")
	b.get("/nowhere").want(t, http.StatusNotFound, "no such page")
	b.get("/api/v1/nowhere").want(t, http.StatusNotFound, `{"error":"There is no such address`)
}

// event2 is another event of the same tenant.
func event2(event outbox.Event) outbox.Event {
	event.ID = uuid.Must(uuid.NewV7())
	return event
}

// TestPaging walks through a list and sees every event once.
func TestPaging(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	events := make([]outbox.Event, 25)
	for i := range events {
		events[i] = layouttest.Event("modkit")
	}
	s.emit(events...)
	b := newBrowser(t, admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}})
	seen := map[string]bool{}
	cursor := ""
	for pages := 1; ; pages++ {
		var list struct {
			Events []struct {
				ID string `json:"id"`
			} `json:"events"`
			Next string `json:"next"`
		}
		got := b.get("/api/v1/targets/shop/events?size=10&cursor=" + url.QueryEscape(cursor))
		if err := json.Unmarshal([]byte(got.body), &list); err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Events {
			if seen[event.ID] {
				t.Errorf("%s is on two pages", event.ID)
			}
			seen[event.ID] = true
		}
		if cursor = list.Next; cursor == "" {
			break
		}
		if pages > 5 {
			t.Fatal("the list has no end")
		}
	}
	if len(seen) != len(events) {
		t.Errorf("%d events are listed, want %d", len(seen), len(events))
	}
	b.get("/t/shop/events?size=10").want(t, http.StatusOK, `rel="next"`)
	b.get("/t/shop/events?cursor=nonsense").want(t, http.StatusBadRequest, "cursor")
}

// TestMasked: viewers do not see payloads and the values of headers where that is set, neither on
// pages nor in the API.
func TestMasked(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	event := layouttest.Event("standard")
	event.ID, event.Payload = uuid.Must(uuid.NewV7()), []byte(`{"card":"4111-1111"}`)
	event.Headers = map[string]string{"authorization": "Bearer s3cret"}
	s.emit(event)
	p := newParties(t)
	b := newBrowser(t, admin.Config{
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}, Access: admin.Access{Credentials: p.Credentials, MaskPayloads: true},
	})
	for where, path := range map[string]string{"page": "/t/shop/events/", "API": "/api/v1/targets/shop/events/"} {
		path += event.ID.String()
		for what, secret := range map[string]string{"payload": "4111-1111", "headers": "s3cret"} {
			t.Run(what+" in the "+where, func(t *testing.T) {
				t.Parallel()
				if got := b.send("GET", path, "", bearer(p.viewer)); got.StatusCode != http.StatusOK || strings.Contains(got.body, secret) {
					t.Errorf("%s shows a viewer the %s: %d %s", path, what, got.StatusCode, textOf(got.body))
				}
				b.send("GET", path, "", bearer(p.operator)).want(t, http.StatusOK, secret)
			})
		}
	}
}

// TestRetry retries dead events by their group and as chosen ones, with a preview.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first, second, third := layouttest.Event("modkit"), layouttest.Event("modkit"), layouttest.Event("modkit")
	first.ID, second.ID = uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	s.kill("no route to host 10.0.0.7", first, second)
	s.kill("schema 9 is unknown", third)
	b := newBrowser(t, admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}})
	groups := b.get("/t/shop/dead")
	groups.want(t, http.StatusOK, "3 dead, in 2 groups")
	groups.want(t, http.StatusOK, "no route to host #.#.#.#")
	b.get("/t/shop/retry?id="+first.ID.String()).want(t, http.StatusOK, "Retry 1<")
	b.get("/t/shop/retry").want(t, http.StatusBadRequest, "say which events")
	b.submit("/t/shop/retry?all=1", "/t/shop/retry", url.Values{}).want(t, http.StatusBadRequest, "say which events")
	done := b.submit("/t/shop/retry?all=1", "/t/shop/retry", url.Values{"error": {"no route to host #.#.#.#"}, "topic": {"usage"}})
	if text := textOf(done.body); !strings.Contains(text, "2 events retried.") {
		t.Errorf("after the retry: %s", text)
	}
	var broker outboxtest.Broker
	s.drain(&broker)
	if broker.Count(first.ID) != 1 || broker.Count(second.ID) != 1 || len(broker.Received()) != 2 {
		t.Errorf("%d messages after the retry", len(broker.Received()))
	}
	log := b.get("/t/shop/audit")
	for _, words := range []string{"retry", "console", "done"} {
		log.want(t, http.StatusOK, words)
	}
}

// TestReplayTable: a queue table is replayed to the destination that the console has.
func TestReplayTable(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	event := layouttest.Event("modkit")
	event.ID = uuid.Must(uuid.NewV7())
	s.emit(event)
	var broker outboxtest.Broker
	s.drain(&broker)
	outboxes := []admin.Outbox{{Name: "without", Outbox: s.Outbox}, {Name: "with", Outbox: s.Outbox, Publisher: &broker}}
	b := newBrowser(t, admin.Config{Outboxes: outboxes})
	b.get("/t/without/replay").want(t, http.StatusOK, "no destination")
	b.get("/t/with/replay?preview=1").want(t, http.StatusBadRequest, "say which events to replay")
	preview := "/t/with/replay?preview=1&id=" + event.ID.String()
	b.get(preview).want(t, http.StatusOK, "Replay 1<")
	if n := broker.Count(event.ID); n != 1 {
		t.Errorf("a preview publishes: %d", n)
	}
	b.submit(preview, "/t/with/replay", url.Values{"id": {event.ID.String()}}).want(t, http.StatusOK, "1 event replayed.")
	if n := broker.Count(event.ID); n != 2 {
		t.Errorf("the event was received %d times, want 2", n)
	}
	b.submit(preview, "/t/with/hold", url.Values{"id": {event.ID.String()}}).want(t, http.StatusBadRequest, "")
}

// TestReplayStream: a stream is replayed by its relay, also where the console has a destination, as in a relay's process.
func TestReplayStream(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	b := newBrowser(t, admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox, Publisher: &outboxtest.Broker{}}}})
	b.get("/t/shop/replay?preview=1&key=order/42").want(t, http.StatusOK, "Nothing to replay")
}

// TestAPIChanges: a program counts first, then changes, and misspells nothing.
func TestAPIChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.kill("no", layouttest.Event("modkit"), layouttest.Event("modkit"))
	p := newParties(t)
	b := newBrowser(t, admin.Config{
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}, Access: admin.Access{Credentials: p.Credentials},
	})
	retry := func(body string) answer {
		return b.send("POST", "/api/v1/targets/shop/retry", body, func(r *http.Request) {
			bearer(p.operator)(r)
			r.Header.Set("Content-Type", "application/json")
		})
	}
	retry(`{"topic":"usage","dryRun":true}`).want(t, http.StatusOK, `"events":2,"dryRun":true`)
	retry(`{}`).want(t, http.StatusBadRequest, "say which events")
	retry(`{"topik":"usage"}`).want(t, http.StatusBadRequest, "topik")
	retry(`{"topic":"usage"} {}`).want(t, http.StatusBadRequest, "after the JSON")
	retry(`{"topic"`).want(t, http.StatusBadRequest, "")
	// What only the job finds out is no success, either.
	var refused answer
	await.Until(t, "the job to end", func() bool {
		refused = retry(`{"since":"2030-01-01T00:00:00Z","until":"2020-01-01T00:00:00Z"}`)
		return refused.StatusCode != http.StatusAccepted
	})
	refused.want(t, http.StatusBadRequest, "the filter cannot be used")
	b.send("POST", "/api/v1/targets/shop/retry", `{"topic":"usage"}`, bearer(p.operator)).want(t, http.StatusUnsupportedMediaType, "application/json")
	begun := retry(`{"topic":"usage"}`) // it may be done, or take a little longer
	var job struct{ ID, Actor string }
	if err := json.Unmarshal([]byte(begun.body), &job); err != nil || job.Actor != "operator-program" {
		t.Fatalf("the job is %s (%v)", begun.body, err)
	}
	look := func() answer { return b.send("GET", "/api/v1/targets/shop/jobs/"+job.ID, "", bearer(p.viewer)) }
	await.Until(t, "the job to end", func() bool { return look().StatusCode != http.StatusAccepted })
	look().want(t, http.StatusOK, `"events":2`)
	look().want(t, http.StatusOK, `"running":false`)
	b.send("GET", "/api/v1/targets/shop/jobs/x", "", bearer(p.viewer)).want(t, http.StatusNotFound, "forgotten")
	b.send("GET", "/api/v1/targets/shop/audit", "", bearer(p.viewer)).want(t, http.StatusOK, `"actor":"operator-program"`)
}

// TestUnreachable: what the database says is for the log, not for pages.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	pgtest.Exec(t, s.pool, `DROP TABLE modkit_outbox_events`)
	var log strings.Builder
	console, err := admin.New(admin.Config{
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/t/shop/events", http.NoBody)
	r.RemoteAddr = "127.0.0.1:4711"
	w := httptest.NewRecorder()
	console.ServeHTTP(w, r)
	if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "modkit_outbox_events&#34;") || !strings.Contains(log.String(), "modkit_outbox_events") {
		t.Errorf("%d %s\nlogged: %s", w.Code, textOf(w.Body.String()), log.String())
	}
}

// TestRestoredStream: pages say why they show nothing, and what to do.
func TestRestoredStream(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	pgtest.Exec(t, s.pool, `DELETE FROM outbox_history`)
	console, err := admin.New(admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: s.Outbox}}})
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	for _, path := range []string{"/t/shop/", "/t/shop/events", "/t/shop/dead"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, http.NoBody)
		r.RemoteAddr = "127.0.0.1:4711"
		w := httptest.NewRecorder()
		console.ServeHTTP(w, r)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "run outbox repair") {
			t.Errorf("%s: %d %s", path, w.Code, textOf(w.Body.String()))
		}
	}
}
