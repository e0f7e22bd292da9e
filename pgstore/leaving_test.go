package pgstore_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestLeaving has events be left by a claim: those that go to closed topics, by their topic or by their
// type, and some by their ids. They are as they were, and come when nothing is closed any more.
func TestLeaving(t *testing.T) {
	t.Parallel()
	byTopic := func(event *outbox.Event, to string) { event.Topic = to }
	byType := func(event *outbox.Event, to string) { event.Type = to }
	for name, c := range map[string]struct {
		layout     string
		change     func(event *outbox.Event, to string)
		gone, fine string
		closed     outbox.ClosedRoutes
	}{
		"topic": {"modkit", byTopic, "gone", "fine", outbox.ClosedRoutes{Topics: []string{"more", "gone"}}},
		"topic, of tables without types": {"modkit", byTopic, "gone", "fine", outbox.ClosedRoutes{
			Topics: []string{"gone"}, Types: []string{"fine"}, OtherTypes: []string{"gone"},
		}},
		"type":              {"doorito", byType, "gone", "fine", outbox.ClosedRoutes{Topics: []string{"x"}, Types: []string{"gone"}, OtherTypes: []string{"fine"}}},
		"type, with a lock": {"packfinderz", byType, "order_created", "order_expired", outbox.ClosedRoutes{Topics: []string{"x"}, Types: []string{"order_created"}}},
		"type, an enum":     {"ours", byType, "gone", "made", outbox.ClosedRoutes{Topics: []string{"x"}, Types: []string{"gone"}}},
		"no topic, but for types that have one": {"doorito", byType, "gone", "fine", outbox.ClosedRoutes{
			Topics: []string{"rest", ""}, OtherTypes: []string{"fine"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.layout)
			events := make([]outbox.Event, 4)
			for i := range events {
				events[i] = h.event()
				c.change(&events[i], []string{c.gone, c.fine}[i%2])
			}
			ids := h.emit(t, events...)
			store := h.open(t, pgstore.Config{})
			want := func(closed outbox.ClosedRoutes, except []uuid.UUID, ids ...uuid.UUID) {
				t.Helper()
				batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10, Closed: closed, Except: except})
				if err != nil {
					t.Fatal(err)
				}
				var got []uuid.UUID
				outcomes := make([]outbox.Outcome, len(batch.Messages())) // released
				for _, m := range batch.Messages() {
					got = append(got, m.ID)
				}
				if !slices.Equal(got, ids) {
					t.Errorf("with %+v closed, and without %v, claimed %v, want %v", closed, except, got, ids)
				}
				if _, err := batch.Settle(t.Context(), outcomes); err != nil {
					t.Fatal(err)
				}
				batch.Abandon()
			}
			want(c.closed, nil, ids[1], ids[3])
			want(outbox.ClosedRoutes{}, ids[1:3], ids[0], ids[3])
			want(c.closed, ids[:2], ids[3])
			for _, id := range ids {
				if state := h.State(t, id); state.Status != storetest.Pending || state.Attempts != 0 {
					t.Errorf("an event is %+v, want it as it was", state)
				}
			}
			want(outbox.ClosedRoutes{}, nil, ids...)
		})
	}
}

// TestLeavingWhatRanOut has events whose lease ran out be left, too.
func TestLeavingWhatRanOut(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	events := []outbox.Event{h.event(), h.event(), h.event()}
	events[0].Topic, events[1].Topic, events[2].Topic = "gone", "fine", "fine"
	ids := h.emit(t, events...)
	if _, err := h.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	h.Expire(t)
	batch, err := h.open(t, pgstore.Config{}).Claim(t.Context(), outbox.ClaimRequest{Limit: 10, Closed: outbox.ClosedRoutes{Topics: []string{"gone"}}, Except: ids[1:2]})
	if err != nil {
		t.Fatal(err)
	}
	if list := batch.Messages(); len(list) != 1 || list[0].ID != ids[2] {
		t.Errorf("claimed %v, want %v", list, ids[2])
	}
}
