package main

import (
	"context"
	"log/slog"
	"net/url"
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

// A right that the role has lost is told, with what gives it back.
func TestLostRights(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	role := "publisher_of_" + b.pool.Config().ConnConfig.Database
	testdb.Exec(t, b.pool, `CREATE ROLE `+role+` LOGIN; GRANT SELECT, UPDATE ON outbox_events TO `+role+`; GRANT SELECT, INSERT ON outbox_dlq TO `+role)
	t.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	at, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	b.env["PACKFINDERZ_DATABASE_URL"] = at.String()
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
