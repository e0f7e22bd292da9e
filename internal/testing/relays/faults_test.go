package relays_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstore"
)

// wantAtLeastOnce fails unless every event arrived.
func (b *bed) wantAtLeastOnce(ids []uuid.UUID) {
	b.Helper()
	received := make(map[uuid.UUID]bool)
	for _, m := range b.broker.Received() {
		received[m.ID] = true
	}
	for _, id := range ids {
		if !received[id] {
			b.Fatalf("event %s was lost; the log: %s", id, b.logs.Text())
		}
	}
}

// quickly makes failures of the database show soon.
func (b *bed) quickly(lease time.Duration) outbox.RelayConfig {
	b.Helper()
	parsed, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	query := parsed.Query()
	query.Set("application_name", "relay")
	query.Set("statement_timeout", "1000") // on a busy machine a check takes a while, too
	parsed.RawQuery = query.Encode()
	original := b.url
	b.url = parsed.String()
	defer func() { b.url = original }()
	config := b.config(6, pgstore.Config{Lease: lease})
	config.BatchSize = 10
	return config
}

// TestBackendsKilled ends the relay's connections over and over.
func TestBackendsKilled(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		const connections = ` FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay'`
		relay := b.start(b.quickly(time.Second))
		b.waitSQL(`SELECT count(*) > 0` + connections)
		var ids []uuid.UUID
		killed := 0
		for range 15 {
			ids = append(ids, b.emit(30)...)
			var n int
			if err := b.pool.QueryRow(b.Context(), `SELECT count(pg_terminate_backend(pid))`+connections).Scan(&n); err != nil {
				b.Fatal(err)
			}
			killed += n
		}
		if killed == 0 {
			b.Fatal("no connection was killed")
		}
		b.waitReceived(1)
		b.waitDelivered(len(ids))
		outboxtest.Stop(b, relay)
		b.wantAtLeastOnce(ids)
	})
}

// waitDelivered waits until n events are delivered, and known to be.
func (b *bed) waitDelivered(n int) {
	b.Helper()
	if b.name == stream {
		b.waitSQL(`SELECT (SELECT count(*) FROM outbox_stream) = $1
			AND NOT EXISTS (SELECT FROM outbox_stream e JOIN outbox_shards s USING (shard) WHERE e.seq > s.q1)
			AND NOT EXISTS (SELECT FROM outbox_parked)`, n)
		return
	}
	where := "published_at IS NOT NULL"
	if b.layout.Done == layouts.DoneStatus {
		where = "status = 'delivered'"
	}
	b.waitSQL(fmt.Sprintf(`SELECT count(*) = %d FROM %s WHERE %s`, n, b.layout.Table, where))
}

// TestServerCrash restarts PostgreSQL as a crash does, on a cluster of its own.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	// A crash must not take back what was committed, as it may with the settings of the other tests.
	server := pgtest.Server(t, map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"})
	b := newBedOn(t, "modkit", server.URL("postgres"))
	relay := b.start(b.quickly(time.Second))
	// Enough that the relay is at work when the server goes.
	const some = 2000
	ids := b.emit(some)
	for range 2 {
		b.waitReceived(len(ids) - some + 1)
		if err := server.Restart(b.Context(), pgserver.Immediate); err != nil {
			b.Fatal(err)
		}
		b.pool.Reset() // the test's own connections are gone, too
		ids = append(ids, b.emit(some)...)
	}
	b.waitDelivered(len(ids))
	outboxtest.Stop(t, relay)
	b.wantAtLeastOnce(ids)
	if b.logs.Count("the store failed")+b.logs.Count("settle failed") == 0 {
		b.Error("the relay did not notice the crash")
	}
}

// TestTableLocked has somebody lock the table for longer than statements may take.
func TestTableLocked(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(50)
		config := b.quickly(time.Second)
		tx, err := b.pool.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tx.Rollback(b.Context()) }() // where the test fails
		if _, err := tx.Exec(b.Context(), `LOCK TABLE `+b.table()+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			b.Fatal(err)
		}
		relay := b.start(config)
		b.waitLogged("the store failed")
		if err := tx.Rollback(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.waitDelivered(len(ids))
		outboxtest.Stop(b, relay)
		b.wantOnce(ids)
	})
}

// table is where emits write.
func (b *bed) table() string {
	if b.name == stream {
		return "outbox_stream"
	}
	return b.layout.Table
}

// waitLogged waits until the relay has logged something.
func (b *bed) waitLogged(words string) {
	b.Helper()
	await.Until(b, fmt.Sprintf("%q to be logged", words), func() bool { return b.logs.Count(words) > 0 })
}

// TestDiskFull has the database refuse every write, first those of the claim, then those
// of the settle. What was published is settled as soon as the disk has room, not published
// again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	pgtest.Exec(t, b.pool, `
		CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	for words, when := range map[string]string{
		"doing=claim":   "NEW.status = 'processing'",
		"settle failed": "NEW.status = 'delivered'",
	} {
		pgtest.Exec(t, b.pool, `CREATE TRIGGER full_disk BEFORE UPDATE ON modkit_outbox_events FOR EACH ROW WHEN (`+when+`) EXECUTE FUNCTION full_disk()`)
		relay := b.start(b.config(6, pgstore.Config{}))
		ids := b.emit(20)
		b.waitLogged(words)
		pgtest.Exec(t, b.pool, `DROP TRIGGER full_disk ON modkit_outbox_events`)
		b.waitSQL(`SELECT count(*) = 0 FROM modkit_outbox_events WHERE status <> 'delivered'`)
		outboxtest.Stop(t, relay)
		b.wantOnce(ids)
		if b.logs.Count("No space left on device") == 0 {
			b.Error("the log does not say what is wrong")
		}
	}
}

// TestSwallowedSettle has a trigger keep the delivery of one event out of its row, without an error. The event is
// published again, which cannot be helped; it is told by name, has its pause, and the others go on.
func TestSwallowedSettle(t *testing.T) {
	t.Parallel()
	b := newBed(t, "packfinderz")
	swallowed := b.emit(1)[0]
	pgtest.Exec(t, b.pool, fmt.Sprintf(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER swallow BEFORE UPDATE ON outbox_events FOR EACH ROW WHEN (OLD.id = '%s') EXECUTE FUNCTION swallow()`, swallowed))
	began := time.Now()
	b.start(b.config(4, pgstore.Config{}))
	others := 0
	for range 20 {
		b.emit(1)
		others++
		b.waitSQL(`SELECT count(*) = $1 FROM outbox_events WHERE published_at IS NOT NULL`, others)
	}
	published := 0
	for _, m := range b.broker.Received() {
		if m.ID == swallowed {
			published++
		}
	}
	const (
		pause = 10 * time.Second
		ahead = 2 // claims that were on their way when the settle failed
	)
	if most := 1 + ahead + int(time.Since(began)/pause); published < 1 || published > most {
		t.Errorf("the event was published %d times in %s, want at most %d", published, time.Since(began), most)
	}
	b.waitLogged("events could not be settled; they will be published again")
	line := b.logs.Line("events could not be settled")
	for _, word := range []string{swallowed.String(), "a trigger or a rule of outbox_events"} {
		if !strings.Contains(line, word) {
			t.Errorf("the log says %s, want %q in it", line, word)
		}
	}
}

// TestStoreError has a database that takes connections, and lets nothing be written.
func TestStoreError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "packfinderz")
	b.emit(1)
	const readOnly = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET default_transaction_read_only = %s', current_database()); END $$`
	pgtest.Exec(t, b.pool, fmt.Sprintf(readOnly, "on"))
	relay := b.start(b.config(4, pgstore.Config{}))
	await.Until(t, "the relay to tell of it", func() bool { return relay.StoreError() != nil })
	var fault *outbox.StoreError
	if err := relay.StoreError(); !errors.As(err, &fault) || fault.Doing != "claim" || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("the relay says %v", err)
	}
	pgtest.Exec(t, b.pool, fmt.Sprintf(readOnly, "off"))
	pgtest.Exec(t, b.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	b.waitDelivered(1)
	await.Until(t, "the relay to be well again", func() bool { return relay.StoreError() == nil })
}
