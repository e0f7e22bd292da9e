package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestStreamMigrate(t *testing.T) {
	t.Parallel()
	for name, place := range map[string][]string{
		"default": nil, "schema": {"--schema", "events"}, "a hostile name": {"--schema", `a"b; --'$$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &standard{T: t, url: pgtest.URL(t)}
			s.pool = connect(t, s.url)
			s.run("", "migrate status", place...)
			if got := relations(t, s.pool); got != "" {
				t.Errorf("status wrote something: %s", got)
			}
			s.refuses("--adopt", "migrate up --adopt", place...)
			s.refuses("a power of two", "migrate up --shards 6", place...)
			s.refuses("choose 3 to 100", "migrate up --slots 2", place...)
			s.refuses("whole seconds", "migrate up --slot-length 1ms", place...)
			s.refuses("fixed names", "migrate up --table mine", place...)
			if got := relations(t, s.pool); got != "" {
				t.Errorf("a refusal wrote something: %s", got)
			}
			s.run("", "migrate up --slots 5 --slot-length 1h --shards 4", place...)
			first := relations(t, s.pool)
			for _, again := range []string{"", " --slots 5", " --shards 4 --slot-length 60m"} {
				if got := s.run("", "migrate up"+again, place...); !strings.Contains(got, "nothing to do") {
					t.Errorf("migrate up%s once more: %s", again, got)
				}
			}
			for _, other := range []string{"--slots 8", "--slot-length 24h", "--shards 8", "--slots 5 --shards 2"} {
				s.refuses("has 5 slots of 1h0m0s and 4 shards", "migrate up "+other, place...)
			}
			if got := s.run("", "migrate status", place...); strings.Contains(got, "pending") {
				t.Errorf("status after up: %s", got)
			}
			s.run("", "migrate down", place...)
			if got := relations(t, s.pool); got != "" {
				t.Errorf("down left %s", got)
			}
			s.run("", "migrate up --slots 5 --slot-length 1h --shards 4 --layout standard", place...)
			if got := relations(t, s.pool); got != first {
				t.Errorf("up, down, up made %s, the first up %s", got, first)
			}
		})
	}
}

// TestStreamMigrateOthers leaves streams alone that it did not make, and tables without shape.
func TestStreamMigrateOthers(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	pgtest.Exec(t, s.pool, `DROP TABLE outbox_stream_standard_goose`)
	s.refuses("another --schema", "migrate up")
	s.refuses("the shape of a stream", "migrate up --layout modkit --shards 8")
	refused(t, "cannot reach the database", "", "migrate", "up", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
	// A stream in another schema is another one.
	pgtest.Exec(t, s.pool, `CREATE SCHEMA first`)
	ok(t, "", "migrate", "up", "--shards", "4", "--schema", "first", "--from", s.url+"&search_path=first,public")
	if got := s.count("first.outbox_shards"); got != 4 {
		t.Errorf("the stream in the first schema has %d shards", got)
	}
}

func TestStreamMigrateDownKeepsEvents(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(1)
	s.refuses("holds events", "migrate down")
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_parked (subscription, shard, seq, state, gates, id, topic, type, payload, created_at)
		SELECT 'default', shard, seq, 'dead', false, id, topic, type, payload, created_at FROM outbox_stream`)
	pgtest.Exec(t, s.pool, `DELETE FROM outbox_stream`)
	s.refuses("holds events", "migrate down")
	s.run("", "migrate down --force")
}

func TestStreamEmitAndDrain(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.refuses("type is empty", "emit --topic orders --payload {}")
	s.refuses("topic is empty", "emit --type placed --payload {}")
	s.refuses("there is no stream; make it with outbox migrate up", "emit --type placed --topic orders --payload {} --schema elsewhere")
	if got := s.count("outbox_stream"); got != 0 {
		t.Errorf("a refused event was written: %d rows", got)
	}
	one := []string{"--type", "placed", "--topic", "orders", "--key", "k", "--payload", "\x01 no JSON", "--header", "a=b", "--dedupe-key", "1"}
	s.hears(func() {
		if got := s.run("", "emit --serialize", one...); !strings.HasPrefix(got, "emitted ") {
			t.Errorf("emit prints %q", got)
		}
	})
	if got := s.run("", "emit", one...); !strings.HasPrefix(got, "already enqueued as ") {
		t.Errorf("emit prints %q", got)
	}
	if got := s.run("", "drain"+quiet); !strings.Contains(got, `"headers":{"a":"b"},"contentType":"","payloadBase64":"ASBubyBKU09O"`) {
		t.Errorf("drain prints %q", got)
	}
	const events = 3000
	s.emit(events)
	out := s.run("", "drain"+quiet+" --batch-size 100 --concurrency 3 --max-attempts 5 --lease 10s")
	if got := len(delivered(t, out)); got != events {
		t.Errorf("drain delivered %d events, want %d", got, events)
	}
	last := map[string]int{}
	for _, event := range delivered(t, out) {
		if event.Payload.Order < last[event.Key] {
			t.Errorf("key %s: order %d came after %d", event.Key, event.Payload.Order, last[event.Key])
		}
		last[event.Key] = event.Payload.Order
	}
	if got := s.run("", "drain"+quiet); got != "" {
		t.Errorf("delivered again: %s", got)
	}
	if got := s.count("outbox_relays"); got != 0 {
		t.Errorf("%d relays are still listed: the store was not closed", got)
	}
}

func TestStreamRelayRefuses(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	for _, command := range []string{"relay", "drain"} {
		s.refuses("--to is missing", command)
		for _, filter := range []string{"--namespace n", "--topic t", "--tenant 01890000-0000-7000-8000-000000000000"} {
			s.refuses("make one with that filter", command+" --to discard: "+filter)
		}
		s.refuses(`subscription "nobody": there is no such subscription`, command+" --to discard: --subscription nobody")
		s.refuses("there is no stream", command+" --to discard: --schema elsewhere")
		s.refuses("fixed names", command+" --to discard: --table elsewhere")
		s.refuses("between 100ms and 24h", command+" --to discard: --lease 1ms")
		s.refuses("must be at least 1", command+" --to discard: --max-attempts -1")
		s.refuses("a third of the lease", command+" --to discard: --lease 2s")
		s.refuses("is a table and has none", command+" --to discard: --subscription x --layout modkit")
	}
	// A cursor that is ahead of the server comes from another one.
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000`)
	s.refuses("run outbox repair", "relay --to discard:")
	s.refuses("run outbox repair", "drain --to discard:")
	s.refuses("run outbox repair", "purge")
	if got := s.count("outbox_relays"); got != 0 {
		t.Errorf("something was written: %d relays", got)
	}
}

func TestStreamPurge(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(10)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	s.run("", "drain --to file:"+file)
	if content, err := os.ReadFile(file); err != nil || strings.Count(string(content), "\n") != 10 {
		t.Fatalf("the file has %q (%v)", content, err)
	}
	if got := s.run("", "purge"); got != "deleted 0 events\n" {
		t.Errorf("fresh events: %q", got)
	}
	// Into a slot that was last written two days ago.
	pgtest.Exec(t, s.pool, `UPDATE outbox_stream SET slot = (slot + 6) % 8`)
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_parked (subscription, shard, seq, state, gates, id, topic, type, payload, created_at, changed_at)
		SELECT 'default', shard, seq, 'dead', false, id, topic, type, payload, created_at, now() - interval '3 days' FROM outbox_stream LIMIT 3`)
	purge := "purge --retention 24h --dlq-retention 48h"
	if got := s.run("", purge+" --dry-run --json"); got != `{"dryRun":true,"events":13}`+"\n" {
		t.Errorf("a dry run: %q", got)
	}
	if got := s.run("", purge); got != "deleted 13 events\n" || s.count("outbox_stream")+s.count("outbox_parked") != 0 {
		t.Errorf("%q, %d and %d rows left", got, s.count("outbox_stream"), s.count("outbox_parked"))
	}
	// Dead events are a subscription's own, and so is their retention.
	s.run("", "subscriptions create billing")
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_parked (subscription, shard, seq, state, gates, id, topic, type, payload, created_at, changed_at)
		VALUES ('billing', 0, 1, 'dead', false, gen_random_uuid(), 'orders', 'made', '{}', now(), now() - interval '3 days')`)
	if got := s.run("", purge); got != "deleted 0 events\n" {
		t.Errorf("the dead events of another subscription: %q", got)
	}
	s.refuses(`subscription "nobody": there is no such subscription`, purge+" --subscription nobody")
	if got := s.run("", purge+" --subscription billing"); got != "deleted 1 event\n" {
		t.Errorf("the dead events of billing: %q", got)
	}
	s.run("", "subscriptions drop billing")
	s.refuses("there is no stream; make it with outbox migrate up", "purge --schema elsewhere")
	pgtest.Exec(t, s.pool, `DELETE FROM outbox_subscriptions`)
	s.refuses("there is no such subscription", "purge")
	s.run("", "subscriptions create another")
	s.run("", "purge")
	s.refuses("must be positive", "purge --retention 0")
}

func TestStandardIsListed(t *testing.T) {
	t.Parallel()
	if got := ok(t, "", "layouts"); !strings.HasPrefix(got, "standard ") {
		t.Errorf("layouts prints %q", got)
	}
	if got := ok(t, "", "layouts", "standard"); !strings.Contains(got, "outbox migrate up") {
		t.Errorf("layouts standard prints %q", got)
	}
	if got := ok(t, "", "layouts", "standard", "--json"); !strings.HasPrefix(got, `{"name":"standard"`) {
		t.Errorf("layouts standard --json prints %q", got)
	}
}
