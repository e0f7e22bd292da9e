package admin_test

import (
	"html"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// TestHostileNames shows subscriptions whose names earlier programs allowed: every page of each is
// found by the links that the console gives.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	names := []string{"plain", "a/b", "a//b", "..", ".", "a/../b", `"><script>`, "it's", "ü ?#%2f", "a;b", "\x1b[2J\n", "~61"}
	var outboxes []admin.Outbox
	for _, name := range names {
		pgtest.Exec(t, s.pool, `INSERT INTO outbox_subscriptions (name) VALUES ($1)`, name)
		pgtest.Exec(t, s.pool, `INSERT INTO outbox_shards (subscription, shard, s1, q1, hi, pos)
			SELECT $1, shard, s1, q1, hi, pos FROM outbox_shards WHERE subscription = 'default'`, name)
		events, err := ops.Stream(s.pool, pgstream.Stream{}, name)
		if err != nil {
			t.Fatal(err)
		}
		outboxes = append(outboxes, admin.Outbox{Name: name, Outbox: events})
	}
	console, err := admin.New(admin.Config{Outboxes: outboxes, Prefix: "/console", Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(console.Close)
	server := httptest.NewServer(console)
	t.Cleanup(server.Close)
	get := func(address string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d", address, response.StatusCode)
		}
		return string(body)
	}
	links := regexp.MustCompile(`<li><a href="(/console/t/[^"/]*/)"`).FindAllStringSubmatch(get("/console/t/plain/"), -1)
	if len(links) != len(names) {
		t.Fatalf("there are links to %d targets, want %d: %v", len(links), len(names), links)
	}
	for i, link := range links {
		address := html.UnescapeString(link[1])
		page := get(address)
		if want := template.HTMLEscapeString(names[i]); !strings.Contains(page, `aria-current="true">`+want+`<`) {
			t.Errorf("%s is not the page of %q", address, names[i])
		}
		if strings.Contains(page, `"><script>`) {
			t.Errorf("%s has a name that is not escaped", address)
		}
		for _, page := range []string{"events", "dead", "replay", "relays", "audit"} {
			get(address + page)
		}
		get("/console/api/v1/targets/" + strings.Split(address, "/")[3] + "/overview")
	}
	// A name that is one part of a path is found by itself, too.
	get("/console/api/v1/targets/" + url.PathEscape("a/b") + "/overview")
}
