package ops_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// TestHold holds an event of a key, and with it the key, until it is released.
func TestHold(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "standard")
	ofKey := func(key string) func(int, *outbox.Event) {
		return func(_ int, event *outbox.Event) { event.Key = key }
	}
	held := h.emit(3, ofKey("a"))
	// The first fails, and the others wait behind it.
	h.fail(held[0])
	h.expect(ops.StateRetrying, held[0])
	h.expect(ops.StateWaiting, held[1], held[2])
	count, err := h.outbox.Hold(h.Context(), ops.Filter{Key: "a"}, ops.Change{DryRun: true})
	h.must(err)
	if count.Events != 3 {
		h.Errorf("a dry run: %+v", count)
	}
	result, err := h.outbox.Hold(h.Context(), ops.Filter{IDs: held[:1]}, ops.Change{Actor: "alice"})
	h.must(err)
	if result.Events != 1 || !slices.Equal(result.IDs, held[:1]) {
		h.Errorf("held %+v", result)
	}
	h.expect(ops.StateHeld, held[0])
	h.emit(1, ofKey("a"))
	other := h.emit(1, ofKey("b"))
	h.deliver()
	h.expect(ops.StateDelivered, other...)
	h.expect(ops.StateHeld, held[0])
	h.expect(ops.StateWaiting, held[1], held[2])

	result, err = h.outbox.Release(h.Context(), ops.Filter{Key: "a"}, ops.Change{Actor: "bob"})
	h.must(err)
	if result.Events != 1 {
		h.Errorf("released %+v", result)
	}
	var order []uuid.UUID
	h.settle(func(m *outbox.Message) outbox.Outcome {
		order = append(order, m.ID)
		return outbox.Outcome{Kind: outbox.Delivered}
	})
	if len(order) != 4 || !slices.Equal(order[:3], held) {
		h.Errorf("delivered %v, want %v and one more", order, held)
	}
	if what := words(h.show(held[0]).Timeline); what != "emitted read held released delivered" {
		h.Errorf("its history is %q", what)
	}
	if _, err := h.outbox.Hold(h.Context(), ops.Filter{}, ops.Change{}); !errors.Is(err, ops.ErrFilter) {
		h.Errorf("everything was held: %v", err)
	}
}

// fail publishes one batch: an event fails for an hour, and what is behind it waits.
func (h *harness) fail(id uuid.UUID) {
	h.Helper()
	store, err := pgstream.Open(h.Context(), h.pool, pgstream.Stream{}, pgstream.Config{})
	h.must(err)
	defer store.Close()
	await.Until(h.T, "a batch", func() bool {
		batch, err := store.Claim(h.Context(), outbox.ClaimRequest{Limit: 1000})
		h.must(err)
		defer batch.Abandon()
		outcomes := make([]outbox.Outcome, len(batch.Messages()))
		for i := range outcomes {
			if batch.Messages()[i].ID == id {
				outcomes[i] = outbox.Outcome{Kind: outbox.Failed, Delay: time.Hour, Error: "not now"}
			}
		}
		_, err = batch.Settle(h.Context(), outcomes)
		h.must(err)
		return len(outcomes) > 0
	})
}

func (h *harness) expect(state ops.State, ids ...uuid.UUID) {
	h.Helper()
	for _, id := range ids {
		if got := h.show(id).State; got != state {
			h.Errorf("%s is %s, want %s", id, got, state)
		}
	}
}

// TestTablesDoNotHold says so.
func TestTablesDoNotHold(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "doorito")
	for _, change := range []func(context.Context, ops.Filter, ops.Change) (*ops.Result, error){h.outbox.Hold, h.outbox.Release} {
		if _, err := change(h.Context(), ops.Filter{}, ops.Change{}); !errors.Is(err, ops.ErrUnsupported) {
			h.Errorf("held: %v", err)
		}
	}
	if why := h.outbox.Describe().Cannot[ops.OperationHold]; why == "" {
		h.Error("it does not say why")
	}
}

// TestReplay publishes delivered events again: the same ids in the same order, marked so that
// a broker does not take them for duplicates, and leaves the rows as they were.
func TestReplay(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		ids := h.emit(250, nil)
		h.kill("no", ids[7])
		h.emit(1, nil) // not delivered
		filter := ops.Filter{Since: time.Now().Add(-hour)}
		count, err := h.outbox.Replay(h.Context(), filter, ops.Replay{Change: ops.Change{DryRun: true}})
		h.must(err)
		if count.Events != 249 {
			h.Fatalf("a dry run: %+v", count)
		}
		before := h.snapshot()
		broker := &outboxtest.Broker{}
		replay := ops.Replay{Change: ops.Change{Actor: "alice"}, Rate: 100_000, DefaultTopic: "again"}
		if h.layout != "standard" {
			replay.Publisher = broker
		}
		result, err := h.outbox.Replay(h.Context(), filter, replay)
		h.must(err)
		if result.Events != 249 || result.Audit == 0 {
			h.Errorf("replayed %+v", result)
		}
		if h.layout != "standard" {
			if after := h.snapshot(); after != before {
				h.Error("the replay changed the table")
			}
			messages := broker.Received()
			if len(messages) != 249 {
				h.Fatalf("%d messages", len(messages))
			}
			for i, id := range slices.Delete(slices.Clone(ids), 7, 8) {
				if messages[i].ID != id {
					h.Fatalf("message %d is %s, want %s: not in their order", i, messages[i].ID, id)
				}
				if messages[i].DuplicateID() == messages[i].ID.String() {
					h.Fatal("a broker would take a replayed event for a duplicate")
				}
			}
		}
		if what := words(h.show(ids[0]).Timeline); what != "emitted delivered replayed" {
			h.Errorf("its history is %q", what)
		}
		if entry := h.audit()[0]; entry.Operation != ops.OperationReplay || entry.Events != 249 || entry.Outcome != "done" {
			h.Errorf("the audit log says %+v", entry)
		}
		if _, err := h.outbox.Replay(h.Context(), ops.Filter{}, replay); err == nil {
			h.Error("everything was replayed without being asked for")
		}
	})
}

// snapshot is all that a queue table has.
func (h *harness) snapshot() (text string) {
	h.Helper()
	if h.layout == "standard" {
		return ""
	}
	table := h.outbox.Describe().Table
	h.must(h.pool.QueryRow(h.Context(), `SELECT md5(string_agg(t::text, ' ' ORDER BY id)) FROM `+table+` AS t`).Scan(&text))
	return text
}

// TestReplayRefused ends with an error that names an event that the destination does not take.
func TestReplayRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	ids := h.emit(5, nil)
	h.deliver()
	broker := &outboxtest.Broker{}
	broker.FailWith(func(m outbox.Message) error {
		if m.ID == ids[2] {
			return outbox.Terminal(errors.New("too large"))
		}
		return nil
	})
	result, err := h.outbox.Replay(h.Context(), ops.Filter{Topic: "usage"}, ops.Replay{Publisher: broker})
	if err == nil || result.Events != 4 || len(broker.Received()) != 4 {
		h.Errorf("%+v, %v", result, err)
	}
	if entry := h.audit()[0]; entry.Events != 4 || entry.Outcome == "done" {
		h.Errorf("the audit log says %+v", entry)
	}
	if _, err := h.outbox.Replay(h.Context(), ops.Filter{Topic: "usage"}, ops.Replay{}); !errors.Is(err, ops.ErrFilter) {
		h.Errorf("without a destination: %v", err)
	}
}

// TestPurge deletes what is old, and tells of it.
func TestPurge(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	h.emit(30, nil)
	h.deliver()
	h.exec(`UPDATE modkit_outbox_events SET updated_at = now() - interval '2 days', next_attempt_at = now() - interval '2 days'`)
	h.emit(1, nil)
	purge := outbox.Purge{Retention: 24 * hour}
	count, err := h.outbox.Purge(h.Context(), purge, ops.Change{DryRun: true})
	h.must(err)
	if count.Events != 30 || !count.DryRun {
		h.Errorf("a dry run: %+v", count)
	}
	result, err := h.outbox.Purge(h.Context(), purge, ops.Change{Actor: "alice", BatchSize: 7})
	h.must(err)
	if result.Events != 30 {
		h.Errorf("purged %+v", result)
	}
	if entry := h.audit()[0]; entry.Operation != ops.OperationPurge || entry.Events != 30 || entry.Outcome != "done" {
		h.Errorf("the audit log says %+v", entry)
	}
	if _, err := h.outbox.Purge(h.Context(), outbox.Purge{Retention: hour, DeadLetterRetention: hour}, ops.Change{}); !errors.Is(err, ops.ErrUnsupported) {
		h.Errorf("dead letters without a table: %v", err)
	}
}

// TestPurgeDeadOfOneSubscription gives the dead events of one subscription a retention: another's stay, and a dry run does
// not count them.
func TestPurgeDeadOfOneSubscription(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.LayoutName)
	h.must(pgstream.Stream{}.CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "other"}, pgstream.StartOldest))
	h.emit(2, nil)
	h.exec(`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, changed_at, id, topic, type, payload, created_at)
		SELECT s.name, e.shard, e.seq, 'dead', false, now() - interval '2 days', e.id, e.topic, e.type, e.payload, e.created_at
		FROM outbox_stream AS e, outbox_subscriptions AS s`)
	other, err := ops.Stream(h.single, pgstream.Stream{}, "other")
	h.must(err)
	purge := outbox.Purge{Retention: 24 * hour, DeadLetterRetention: 24 * hour}
	for _, dry := range []bool{true, false} {
		result, err := other.Purge(h.Context(), purge, ops.Change{DryRun: dry})
		h.must(err)
		if result.Events != 2 {
			h.Errorf("dry run %t: %d dead events are purged, want 2", dry, result.Events)
		}
	}
	for name, want := range map[string]int{"default": 2, "other": 0} {
		var n int
		h.must(h.pool.QueryRow(h.Context(), `SELECT count(*) FROM outbox_parked WHERE subscription = $1`, name).Scan(&n))
		if n != want {
			h.Errorf("subscription %s has %d dead events left, want %d", name, n, want)
		}
	}
}
