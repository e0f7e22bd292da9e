package main

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

// Readiness is that of PostgreSQL and Pub/Sub, at the start and later; health is the process's own.
func TestReadiness(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	url := server.TCPURL("postgres")
	if err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	b := newBedOn(t, url, testdb.Connect(t, url))
	b.broker.Stop(t)
	b.start()
	await.Until(t, "the publisher to be alive, and not ready", func() bool { return b.get("/healthz") == 200 && b.ready() == 503 })
	b.broker.Start(t)
	await.Until(t, "readiness with Pub/Sub there", func() bool { return b.ready() == 200 })
	if err := server.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "no readiness without PostgreSQL", func() bool { return b.get("/healthz") == 200 && b.ready() == 503 })
	if err := server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "readiness with PostgreSQL back", func() bool { return b.ready() == 200 })
}

// awaitNotReady waits for a reason, which has no secret.
func (b *bed) awaitNotReady(why string) {
	b.Helper()
	var answer string
	await.Until(b, "readiness to say: "+why, func() bool {
		answer = backendtest.Answer(b, "http://"+b.listen+"/readyz")
		return strings.Contains(answer, why)
	})
	if strings.Contains(answer+b.log.Text(), "s3cret") {
		b.Errorf("a secret is told: %s\n%s", answer, b.log.Text())
	}
	if b.ready() != 503 {
		b.Errorf("the status is %d", b.ready())
	}
}

// What PostgreSQL says of a wrong database or role is told, by readiness and in the log.
func TestPostgresRefuses(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*url.URL){
		`database "nowhere" does not exist`: func(u *url.URL) { u.Path = "/nowhere" },
		`role "nobody" does not exist`:      func(u *url.URL) { u.User = url.UserPassword("nobody", "s3cret") },
	} {
		b := newBed(t)
		at, err := url.Parse(b.url)
		if err != nil {
			t.Fatal(err)
		}
		change(at)
		b.env["PACKFINDERZ_DATABASE_URL"] = at.String()
		stop := b.start()
		b.awaitNotReady("PostgreSQL: FATAL: " + says)
		if !strings.Contains(b.log.Text(), strings.ReplaceAll(`PostgreSQL: FATAL: `+says, `"`, `\"`)) {
			t.Errorf("the log does not say it: %s", b.log.Text())
		}
		stop()
	}
}

// asRole has the publisher be a role of its own, with no rights yet.
func (b *bed) asRole() (role string) {
	b.Helper()
	role = "publisher_of_" + b.pool.Config().ConnConfig.Database
	testdb.Exec(b, b.pool, `CREATE ROLE `+role+` LOGIN`)
	b.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			b.Error(err)
		}
	})
	at, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	at.User = url.User(role)
	b.env["PACKFINDERZ_DATABASE_URL"] = at.String()
	return role
}

// grants are those of docs/outbox.md.
func grants(t *testing.T, role string) (list []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "outbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if statement, is := strings.CutPrefix(line, "    GRANT "); is {
			list = append(list, "GRANT "+strings.ReplaceAll(statement, "packfinderz_publisher", role))
		}
	}
	const publishes, all = 2, 4
	if len(list) != all {
		t.Fatalf("%d grants: the first %d are to publish, the others to clean up", len(list), publishes)
	}
	return list
}

// The rights that the documentation names are enough: to publish, to give up, and to clean up. Without the last, cleanup names them.
func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	all := grants(t, b.asRole())
	for _, grant := range all[:2] {
		testdb.Exec(t, b.pool, grant)
	}
	stop := b.start()
	await.Until(t, "readiness", func() bool { return b.ready() == 200 })
	b.emitMany(3)
	b.insert("order_expired", "vendor_order", []byte(`null`))
	b.await()
	stop()
	err := b.run(t.Context(), "cleanup")
	for _, words := range []string{"permission denied", `GRANT DELETE ON TABLE "outbox_events" TO `, `GRANT UPDATE, DELETE ON TABLE "outbox_dlq" TO `} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("cleanup without its rights does not say %s: %v", words, err)
		}
	}
	for _, grant := range all[2:] {
		testdb.Exec(t, b.pool, grant)
	}
	testdb.Exec(t, b.pool, `UPDATE outbox_events SET published_at = now() - interval '1 year' WHERE published_at IS NOT NULL`)
	testdb.Exec(t, b.pool, `ALTER TABLE outbox_dlq DISABLE TRIGGER USER; UPDATE outbox_dlq SET failed_at = now() - interval '1 year';
		ALTER TABLE outbox_dlq ENABLE TRIGGER USER`)
	b.env["PACKFINDERZ_OUTBOX_DLQ_RETENTION"] = "24h"
	if err := b.run(t.Context(), "cleanup"); err != nil {
		t.Error(err)
	}
	if n := b.number(`SELECT (SELECT count(*) FROM outbox_events) + (SELECT count(*) FROM outbox_dlq)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A right that the role has lost is told, with what gives it back.
func TestLostRights(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	role := b.asRole()
	testdb.Exec(t, b.pool, `GRANT SELECT, UPDATE ON outbox_events TO `+role+`; GRANT SELECT, INSERT ON outbox_dlq TO `+role)
	stop := b.start()
	await.Until(t, "readiness", func() bool { return b.ready() == 200 })
	for _, right := range []string{`UPDATE ON TABLE "outbox_events"`, `SELECT ON TABLE "outbox_events"`, `INSERT ON TABLE "outbox_dlq"`} {
		testdb.Exec(t, b.pool, `REVOKE `+right+` FROM `+role)
		b.awaitNotReady("GRANT " + right + " TO " + role)
		testdb.Exec(t, b.pool, `GRANT `+right+` TO `+role)
		await.Until(t, "readiness with the right back", func() bool { return b.ready() == 200 })
	}
	stop()
}
