package ops_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
)

// TestStates finds events by what became of them.
func TestStates(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		ids := h.emit(6, nil)
		h.kill("no such order 4711", ids[1], ids[3])
		fresh := h.emit(2, nil)
		for state, want := range map[ops.State][]uuid.UUID{
			ops.StateDead:      {ids[3], ids[1]},
			ops.StateDelivered: {ids[5], ids[4], ids[2], ids[0]},
			ops.StateDue:       {fresh[1], fresh[0]},
		} {
			events := h.list(ops.Filter{State: state})
			got := make([]uuid.UUID, len(events))
			for i := range events {
				got[i] = events[i].ID
				if events[i].State != state {
					t.Errorf("%s is %s", events[i].ID, events[i].State)
				}
			}
			// Events of one transaction, or delivered at one moment, have no order of time.
			slices.SortFunc(got, func(a, b uuid.UUID) int { return slices.Compare(b[:], a[:]) })
			if !slices.Equal(got, want) {
				h.Errorf("%s: %v, want %v", state, got, want)
			}
		}
		if all := h.list(ops.Filter{}); len(all) != 8 {
			h.Errorf("%d events of 8", len(all))
		}
		dead := h.show(ids[1])
		if dead.LastError != "no such order 4711" || dead.State != ops.StateDead || len(dead.Payload) == 0 {
			h.Errorf("the dead event: %+v", dead)
		}
		if !slices.ContainsFunc(dead.Timeline, func(m ops.Moment) bool { return m.What == "dead" }) {
			h.Errorf("its timeline: %+v", dead.Timeline)
		}
		delivered := h.show(ids[0])
		if delivered.State != ops.StateDelivered || !slices.ContainsFunc(delivered.Timeline, func(m ops.Moment) bool { return m.What == "delivered" }) {
			h.Errorf("the delivered event: %+v", delivered)
		}
		if _, err := h.outbox.Show(h.Context(), uuid.New()); !errors.Is(err, ops.ErrNotFound) {
			h.Errorf("an event that is not there: %v", err)
		}
	})
}

// TestPages goes through a list in pages, each event once.
func TestPages(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		var ids []uuid.UUID
		for range 5 {
			ids = append(ids, h.emit(50, nil)...)
		}
		h.kill("no", ids[:120]...)
		for _, c := range []struct {
			state ops.State
			want  int
		}{{"", 250}, {ops.StateDead, 120}, {ops.StateDelivered, 130}} {
			seen := make(map[uuid.UUID]bool)
			last := time.Now().Add(hour)
			for page := (ops.Page{Size: 7}); ; {
				listing, err := h.outbox.List(h.Context(), ops.Filter{State: c.state}, page)
				h.must(err)
				for i := range listing.Events {
					event := &listing.Events[i]
					if seen[event.ID] {
						h.Errorf("%s is listed twice", event.ID)
					}
					seen[event.ID] = true
					if c.state == "" && event.CreatedAt.After(last) {
						h.Errorf("%s is listed after an older one", event.ID)
					}
					last = event.CreatedAt
				}
				if page.Cursor = listing.Next; page.Cursor == "" {
					break
				}
			}
			if len(seen) != c.want {
				h.Errorf("%q: %d events, want %d", c.state, len(seen), c.want)
			}
		}
		for _, page := range []ops.Page{{Size: -1}, {Size: 1001}, {Cursor: "x"}, {Cursor: "e30"}} {
			if _, err := h.outbox.List(h.Context(), ops.Filter{}, page); !errors.Is(err, ops.ErrFilter) {
				h.Errorf("page %+v: %v", page, err)
			}
		}
	})
}

// TestFilters narrows a list by every field that the outbox has, and refuses the others.
func TestFilters(t *testing.T) {
	t.Parallel()
	aggregate, tenant := uuid.New(), uuid.New()
	everywhere(t, func(h *harness) {
		is := h.outbox.Describe()
		special := h.emit(3, func(i int, event *outbox.Event) {
			if i != 1 {
				return
			}
			switch h.layout {
			case "packfinderz":
				event.Type, event.AggregateType = "payment_settled", "ledger_event"
			case "doorito":
				event.Type, event.AggregateType = "file.gone", "Folder"
			case "modkit":
				event.Namespace, event.Topic, event.TenantID = "other", "billing", tenant
			case "standard":
				event.Namespace, event.Topic, event.Type, event.AggregateType, event.TenantID = "other", "billing", "paid", "order", tenant
			}
			if is.Has(ops.FieldAggregate) {
				event.AggregateID = aggregate.String()
			}
		})[1]
		all := h.show(special)
		from := all.CreatedAt
		for field, filter := range map[ops.Field]ops.Filter{
			ops.FieldID:        {IDs: []uuid.UUID{special}},
			ops.FieldNamespace: {Namespace: all.Namespace},
			ops.FieldTopic:     {Topic: all.Topic},
			ops.FieldType:      {Type: all.Type},
			ops.FieldAggregate: {AggregateType: all.AggregateType, AggregateID: aggregate.String()},
			ops.FieldKey:       {Key: all.Key},
			ops.FieldTenant:    {TenantID: tenant},
		} {
			if !is.Has(field) {
				for _, unknown := range []ops.Filter{{Namespace: "x"}, {Topic: "x"}, {Type: "x"}, {AggregateID: "x"}, {Key: "x"}, {TenantID: tenant}} {
					if _, err := h.outbox.List(h.Context(), unknown, ops.Page{}); err != nil && !errors.Is(err, ops.ErrUnsupported) && !errors.Is(err, ops.ErrFilter) {
						h.Errorf("%+v: %v", unknown, err)
					}
				}
				continue
			}
			for _, span := range [][2]time.Time{{}, {from.Add(-hour), from.Add(hour)}} {
				filter.Since, filter.Until = span[0], span[1]
				if got := h.list(filter); len(got) != 1 || got[0].ID != special {
					h.Errorf("%s since %s: %+v", field, filter.Since, got)
				}
			}
			filter.Since, filter.Until = from.Add(hour), time.Time{}
			if got := h.list(filter); len(got) != 0 {
				h.Errorf("%s in the future: %+v", field, got)
			}
		}
		for _, wrong := range []ops.Filter{{State: "lost"}, {Since: from, Until: from}, {IDs: make([]uuid.UUID, ops.MaxIDs+1)}} {
			if _, err := h.outbox.List(h.Context(), wrong, ops.Page{}); !errors.Is(err, ops.ErrFilter) && !errors.Is(err, ops.ErrUnsupported) {
				h.Errorf("%+v: %v", wrong, err)
			}
		}
	})
}

// TestDeadGroups puts errors together that differ in numbers and ids only.
func TestDeadGroups(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		ids := h.emit(5, nil)
		h.kill("order 17 of "+uuid.NewString()+" is gone", ids[0])
		h.kill("nothing", h.emit(1, nil)...)
		ids = h.emit(2, nil)
		h.kill("order 4711 of "+uuid.NewString()+" is gone", ids...)
		groups, err := h.outbox.DeadGroups(h.Context())
		h.must(err)
		if len(groups.Groups) != 2 || groups.Events != 4 || groups.Cut {
			h.Fatalf("groups: %+v", groups)
		}
		first := groups.Groups[0]
		if first.Error != "order # of # is gone" || first.Count != 3 {
			h.Errorf("the largest group: %+v", first)
		}
		if got := h.list(ops.Filter{State: ops.StateDead, Error: first.Error}); len(got) != 3 {
			h.Errorf("%d events of the group", len(got))
		}
		result, err := h.outbox.Retry(h.Context(), ops.Filter{Error: first.Error}, ops.Change{Actor: "eve"})
		h.must(err)
		if result.Events != 3 {
			h.Errorf("retried %+v", result)
		}
	})
}

// TestDeadGroupsAreCut has more dead events than are grouped, all of one key, and dead ones in a table without an index of
// them: the groups say that they are not all.
func TestDeadGroupsAreCut(t *testing.T) {
	t.Parallel()
	cut := func(h *harness, when string, events int64, want bool) {
		h.Helper()
		groups, err := h.outbox.DeadGroups(h.Context())
		h.must(err)
		if groups.Cut != want || !groups.Cut && groups.Events != events {
			h.Errorf("%s: %d of %d dead events are grouped, cut: %t, want %t", when, groups.Events, events, groups.Cut, want)
		}
	}
	t.Run("a key of a stream", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, "standard")
		h.kill("no use", h.emit(1, func(_ int, event *outbox.Event) { event.Key = "k" })...)
		more := func(n int) {
			h.exec(`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, last_error, reason, id, topic, type, key, payload, created_at)
				SELECT p.subscription, p.shard, p.seq + i, p.state, p.gates, p.attempts, p.last_error, p.reason, gen_random_uuid(), p.topic, p.type, p.key, p.payload, p.created_at
				FROM (SELECT * FROM outbox_parked ORDER BY seq DESC LIMIT 1) AS p, generate_series(1, $1) AS i`, n)
		}
		more(624)
		cut(h, "one shard's share", 625, false)
		more(1)
		cut(h, "one event more", 626, true)
	})
	t.Run("a table", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, "doorito")
		h.kill("no use", h.emit(1, nil)...)
		h.exec(`DROP INDEX idx_outbox_event_dead`)
		cut(h, "a small table", 1, false)
		h.emit(5000, nil)
		h.deliver()
		cut(h, "a dead event far back", 1, true)
	})
}

// TestFindByID finds events in the middle of a long log, which has no index on ids: by an id
// that tells its time, and by one that somebody chose.
func TestFindByID(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "standard")
	h.crowd()
	chosen := uuid.New()
	if got := h.emit(1, func(_ int, event *outbox.Event) { event.ID = chosen }); got[0] != chosen {
		t.Fatalf("emitted %v", got)
	}
	h.exec(`INSERT INTO outbox_stream (shard, id, topic, type, payload) SELECT i & 7, gen_random_uuid(), 'orders', 'made', '{}' FROM generate_series(1, 30000) AS i`)
	for _, seq := range []int{1, 7, planDelivered / 3, planDelivered - 1, planDelivered + planWaiting} {
		var id uuid.UUID
		h.must(h.pool.QueryRow(h.Context(), `SELECT id FROM outbox_stream WHERE seq = $1`, seq).Scan((*[16]byte)(&id)))
		if got := h.show(id); got.ID != id {
			t.Errorf("event %d: %+v", seq, got)
		}
	}
	if got := h.show(chosen); got.ID != chosen || got.State != ops.StateDue {
		t.Errorf("the chosen id: %+v", got)
	}
}
