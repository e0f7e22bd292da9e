package ops_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
)

// dead are n dead events in the table of a layout, each of which counts how often it was
// brought back. They are made by the database: emitting and failing them takes minutes.
func (h *harness) dead(n int) {
	h.Helper()
	switch h.layout {
	case "modkit":
		h.exec(`INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, attempts, next_attempt_at, last_error, updated_at)
			SELECT gen_random_uuid(), 'shop', CASE WHEN i % 10 = 0 THEN 'other' ELSE 'orders' END, '{}', 'dead', 10, now() - interval '2 hours' + i * interval '1 ms', 'broker said no', now() - interval '1 hour'
			FROM generate_series(1, $1::int) AS i`, n)
		h.exec(`VACUUM ANALYZE modkit_outbox_events`) // as the server does by itself, at some time
		h.countRetries("modkit_outbox_events", "OLD.status = 'dead' AND NEW.status = 'pending'")
	case "standard":
		h.exec(`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, last_error, id, topic, type, payload, created_at, changed_at)
			SELECT 'default', i & 7, i, 'dead', false, 10, 'broker said no', gen_random_uuid(), CASE WHEN i % 10 = 0 THEN 'other' ELSE 'orders' END, 'made', '{}', now(), now() - interval '1 hour'
			FROM generate_series(1, $1::int) AS i`, n)
		h.countRetries("outbox_parked", "OLD.state = 'dead' AND NEW.state = 'retry'")
	default:
		h.Fatalf("no dead events for %s", h.layout)
	}
}

func (h *harness) countRetries(table, retried string) {
	h.Helper()
	h.exec(`CREATE TABLE retries (id uuid, at timestamptz DEFAULT clock_timestamp(), batch bigint DEFAULT txid_current())`)
	h.exec(fmt.Sprintf(`CREATE FUNCTION note_retry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO retries (id) VALUES (NEW.id); RETURN NULL; END $$;
		CREATE TRIGGER note_retry AFTER UPDATE ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION note_retry()`, table, retried))
}

// retries are how many events were brought back, how often the most often, and in how many
// transactions.
func (h *harness) retries() (events, most, batches int64) {
	h.Helper()
	h.must(h.pool.QueryRow(h.Context(), `SELECT count(*), coalesce(max(n), 0), (SELECT count(DISTINCT batch) FROM retries)
		FROM (SELECT count(*) AS n FROM retries GROUP BY id) AS r`).Scan(&events, &most, &batches))
	return events, most, batches
}

// TestRetryManyInterrupted brings 100,000 dead events back: it is interrupted in the middle,
// some die again, and another run goes on with the rest. Each is brought back once.
func TestRetryManyInterrupted(t *testing.T) {
	t.Parallel()
	for layout, deadEvents := range map[string]int{"modkit": 100_000, "standard": 30_000} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			h.dead(deadEvents)
			filter := ops.Filter{Topic: "orders"}
			want := int64(deadEvents) * 9 / 10

			count, err := h.outbox.Retry(h.Context(), filter, ops.Change{DryRun: true})
			h.must(err)
			if count.Events != want || !count.DryRun || count.Audit != 0 {
				h.Fatalf("a dry run: %+v", count)
			}
			ctx, interrupt := context.WithCancel(h.Context())
			defer interrupt()
			var told int64
			first, err := h.outbox.Retry(ctx, filter, ops.Change{Actor: "alice", Progress: func(done int64) {
				if told = done; done >= want/3 {
					interrupt()
				}
			}})
			h.must(err)
			events, _, batches := h.retries()
			if !first.Interrupted || first.Events != told || events != told || told < want/3 || told >= want || batches < 9 {
				h.Fatalf("interrupted: %+v; %d events in %d batches were brought back, %d told", first, events, batches, told)
			}
			if entry := h.audit()[0]; entry.Outcome != "interrupted" || entry.Events != first.Events || entry.Actor != "alice" || entry.EndedAt.IsZero() {
				h.Errorf("the audit log says %+v", entry)
			}

			// Some that were brought back die again. They are not brought back by what goes on.
			h.dieAgain(500)
			second, err := h.outbox.Retry(h.Context(), filter, ops.Change{Actor: "bob", Before: first.Before})
			h.must(err)
			if second.Interrupted || first.Events+second.Events != want {
				h.Errorf("%d and %d events, of %d", first.Events, second.Events, want)
			}
			if events, most, _ := h.retries(); events != want || most != 1 {
				h.Errorf("%d events were brought back, of %d, one of them %d times", events, want, most)
			}
			if entry := h.audit()[0]; entry.Outcome != "done" || entry.Events != second.Events || entry.ID != second.Audit {
				h.Errorf("the audit log says %+v", entry)
			}
			if n := h.count(`SELECT count(*) FROM outbox_audit_events`); n != want {
				h.Errorf("the audit log has %d events", n)
			}
			// Without being told, a new run is a new wish.
			third, err := h.outbox.Retry(h.Context(), filter, ops.Change{Actor: "bob"})
			h.must(err)
			if third.Events != 500 {
				h.Errorf("the events that died again: %+v", third)
			}
		})
	}
}

// dieAgain makes events dead that were brought back.
func (h *harness) dieAgain(n int) {
	h.Helper()
	switch h.layout {
	case "modkit":
		h.exec(`UPDATE modkit_outbox_events SET status = 'dead', updated_at = now() WHERE id IN (SELECT id FROM retries LIMIT $1)`, n)
	case "standard":
		h.exec(`UPDATE outbox_parked SET state = 'dead', next_attempt_at = NULL, changed_at = now() WHERE id IN (SELECT id FROM retries LIMIT $1)`, n)
	}
}

func (h *harness) count(sql string) (n int64) {
	h.Helper()
	h.must(h.pool.QueryRow(h.Context(), sql).Scan(&n))
	return n
}

// TestRetry brings events back with the same ids, and tells of it.
func TestRetry(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		ids := h.emit(4, nil)
		h.kill("no", ids[:3]...)
		result, err := h.outbox.Retry(h.Context(), ops.Filter{IDs: []uuid.UUID{ids[0], ids[3], uuid.New()}}, ops.Change{Actor: "alice"})
		h.must(err)
		if result.Events != 1 || len(result.IDs) != 1 || result.IDs[0] != ids[0] || result.Unaudited != "" {
			h.Fatalf("retried %+v", result)
		}
		if got := h.list(ops.Filter{State: ops.StateDead}); len(got) != 2 {
			h.Errorf("%d events are dead", len(got))
		}
		var again []uuid.UUID
		h.settle(func(m *outbox.Message) outbox.Outcome {
			again = append(again, m.ID)
			return outbox.Outcome{Kind: outbox.Delivered}
		})
		if len(again) != 1 || again[0] != ids[0] {
			h.Errorf("delivered %v after the retry of %v", again, ids[0])
		}
		event := h.show(ids[0])
		if what := words(event.Timeline); what != "emitted dead retried delivered" && what != "emitted retried delivered" && what != "emitted read retried delivered" {
			h.Errorf("its history is %q", what)
		}
		entries := h.audit()
		if len(entries) != 1 || entries[0].Actor != "alice" || entries[0].Operation != ops.OperationRetry || entries[0].Events != 1 || entries[0].Outcome != "done" {
			h.Errorf("the audit log says %+v", entries)
		}
	})
}

// TestAuditIsPerTarget has another outbox share the log: neither its entries are listed, nor do they
// come into the history of an event.
func TestAuditIsPerTarget(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	id := h.emit(1, nil)[0]
	h.kill("no", id)
	_, err := h.outbox.Retry(h.Context(), ops.Filter{IDs: []uuid.UUID{id}}, ops.Change{Actor: "alice"})
	h.must(err)
	h.exec(`WITH other AS (
			INSERT INTO outbox_audit (actor, operation, target, request) VALUES ('mallory', 'replay', 'doorito/outbox_event', '{}') RETURNING id
		)
		INSERT INTO outbox_audit_events (event_id, audit_id) SELECT $1, id FROM other`, id)
	if entries := h.audit(); len(entries) != 1 || entries[0].Actor != "alice" || entries[0].Target != h.outbox.Describe().Name {
		h.Errorf("the audit log says %+v", entries)
	}
	if what := words(h.show(id).Timeline); what != "emitted retried" {
		h.Errorf("its history is %q", what)
	}
}

// words are a timeline in short.
func words(timeline []ops.Moment) (text string) {
	for i, m := range timeline {
		if i > 0 {
			text += " "
		}
		text += m.What
	}
	return text
}

// TestUnaudited works without the log's table, and says so.
func TestUnaudited(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"standard", "packfinderz"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := bare(t, layout)
			h.kill("no", h.emit(1, nil)...)
			result, err := h.outbox.Retry(h.Context(), ops.Filter{}, ops.Change{Actor: "alice"})
			h.must(err)
			if result.Events != 1 || result.Unaudited == "" || result.Audit != 0 {
				h.Errorf("retried %+v", result)
			}
			log, err := h.outbox.Audit(h.Context(), ops.Page{})
			h.must(err)
			if log.Missing == "" || len(log.Entries) != 0 {
				h.Errorf("the log: %+v", log)
			}
		})
	}
}
