package outboxtest_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxsql"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/pgstream"
)

var (
	placed = outbox.Event{Type: "order.placed", Key: "order/42", Payload: []byte(`{"order": 42}`)}
	paid   = outbox.Event{
		Type: "order.paid", Key: "order/42", Headers: map[string]string{"trace": "abc", "user": "7"},
		Payload: []byte(`{"amount": 1999, "currency": "EUR", "lines": [{"sku": "a"}, {"sku": "b"}], "at": "2026-01-01"}`),
	}
)

// TestRequireEmitted compares patterns with two events of an open transaction.
func TestRequireEmitted(t *testing.T) {
	t.Parallel()
	tx := begin(t, stream(t))
	if err := emitIn(t.Context(), tx, pgstream.Stream{}, placed, paid); err != nil {
		t.Fatal(err)
	}
	payload := func(text string) outbox.Event { return outbox.Event{Type: "order.paid", Payload: []byte(text)} }
	for name, test := range map[string]struct {
		want  []outbox.Event
		fails string // what the failure says; empty if there is none
	}{
		"by type":           {want: []outbox.Event{{Type: "order.paid"}}},
		"by key, both":      {want: []outbox.Event{{Key: "order/42"}, {Key: "order/42"}}},
		"whole":             {want: []outbox.Event{paid, placed}},
		"one of two wider":  {want: []outbox.Event{{Key: "order/42"}, {Type: "order.placed"}}},
		"a member":          {want: []outbox.Event{payload(`{"amount": 1999}`)}},
		"a number's value":  {want: []outbox.Event{payload(`{"amount": 19.99e2}`)}},
		"a member in lines": {want: []outbox.Event{payload(`{"lines": [{}, {"sku": "b"}]}`)}},
		"a header":          {want: []outbox.Event{{Type: "order.paid", Headers: map[string]string{"user": "7"}}}},

		"no pattern":            {fails: "given no event to look for"},
		"another type":          {[]outbox.Event{{Type: "order.shipped"}}, "not emitted to the stream: order.shipped\nThe events in the stream:\n    1. order.placed topic=orders key=order/42"},
		"another key":           {[]outbox.Event{{Type: "order.paid", Key: "order/7"}}, `event 2: key is "order/42", want "order/7"`},
		"another topic":         {[]outbox.Event{{Topic: "bills", Type: "order.paid"}}, `event 2: topic is "orders", want "bills"`},
		"another amount":        {[]outbox.Event{payload(`{"amount": 2000}`)}, "event 2: payload.amount is 1999, want 2000"},
		"another large id":      {[]outbox.Event{payload(`{"amount": 1999.00000000000000000001}`)}, "payload.amount is 1999, want"},
		"a missing member":      {[]outbox.Event{payload(`{"tip": null}`)}, "event 2: payload.tip is missing"},
		"a member's type":       {[]outbox.Event{payload(`{"amount": "1999"}`)}, `payload.amount is 1999, want "1999"`},
		"an object's type":      {[]outbox.Event{payload(`{"amount": {}}`)}, "payload.amount is 1999, want {}"},
		"fewer lines":           {[]outbox.Event{payload(`{"lines": [{"sku": "a"}]}`)}, "event 2: payload.lines is [{"},
		"another line":          {[]outbox.Event{payload(`{"lines": [{"sku": "a"}, {"sku": "c"}]}`)}, `payload.lines[1].sku is "b", want "c"`},
		"no JSON":               {[]outbox.Event{payload(`amount`)}, "want amount"},
		"two documents":         {[]outbox.Event{payload(`{} {}`)}, "want {} {}"},
		"another header":        {[]outbox.Event{{Type: "order.paid", Headers: map[string]string{"user": "8"}}}, `header "user" is "7", want "8"`},
		"a missing header":      {[]outbox.Event{{Type: "order.paid", Headers: map[string]string{"x": ""}}}, `header "x" is missing`},
		"another id":            {[]outbox.Event{{ID: uuid.Max}}, "want \"ffffffff"},
		"another tenant":        {[]outbox.Event{{TenantID: uuid.Max}}, "event 1: tenant id is \"\", want \"ffffffff"},
		"another time":          {[]outbox.Event{{NotBefore: time.Unix(0, 0)}}, `not before is "", want "1970-01-01T00:00:00Z"`},
		"another maximum":       {[]outbox.Event{{MaxAttempts: 3}}, `max attempts is "", want "3"`},
		"twice instead of once": {[]outbox.Event{{Key: "order/42"}}, "emitted to the stream once too often: event 2"},
		"once instead of twice": {[]outbox.Event{{Type: "order.paid"}, {Type: "order.paid"}}, "not emitted to the stream: order.paid"},
	} {
		said := failure(t, func(t *failing) {
			found := outboxtest.RequireEmitted(t, tx, pgstream.Stream{}, test.want...)
			for i, event := range found {
				if test.want[i].Type != "" && event.Type != test.want[i].Type {
					panic("event " + event.Type + " was returned for " + test.want[i].Type)
				}
			}
		})
		if test.fails == "" && said != "" || !strings.Contains(said, test.fails) {
			t.Errorf("%s: said %q, want %q", name, said, test.fails)
		}
	}
}

func TestRequireNotEmitted(t *testing.T) {
	t.Parallel()
	pool := stream(t)
	tx := begin(t, pool)
	outboxtest.RequireNotEmitted(t, tx, pgstream.Stream{})
	if err := emitIn(t.Context(), tx, pgstream.Stream{}, placed, paid); err != nil {
		t.Fatal(err)
	}
	outboxtest.RequireNotEmitted(t, pool, pgstream.Stream{}) // nothing is committed
	outboxtest.RequireNotEmitted(t, tx, pgstream.Stream{}, outbox.Event{Type: "order.shipped"}, outbox.Event{Key: "order/7"})
	for name, test := range map[string]struct {
		unwanted []outbox.Event
		fails    string
	}{
		"none at all": {nil, "emitted to the stream, and should not be: event 1\nemitted to the stream, and should not be: event 2"},
		"a type":      {[]outbox.Event{{Type: "order.shipped"}, {Type: "order.paid"}}, "should not be: event 2\nThe events in the stream:"},
		"a payload":   {[]outbox.Event{{Payload: []byte(`{"order":42}`)}}, `should not be: event 1`},
	} {
		said := failure(t, func(t *failing) { outboxtest.RequireNotEmitted(t, tx, pgstream.Stream{}, test.unwanted...) })
		if !strings.Contains(said, test.fails) {
			t.Errorf("%s: said %q, want %q", name, said, test.fails)
		}
	}
}

// TestRequireReadsEveryField emits events with all fields that a target has, and finds them by these.
func TestRequireReadsEveryField(t *testing.T) {
	t.Parallel()
	forEachLayout(t, func(t *testing.T, pool *pgxpool.Pool, layout layouts.Layout) {
		t.Helper()
		event, other := layouttest.Event(layout.Name), layouttest.Event(layout.Name)
		event.ID, other.Payload = uuid.New(), []byte(`{"amount": 13}`)
		emit(t, pool, layout, event, other)
		found := outboxtest.RequireEmitted(t, pool, layout, event, other)
		if !found[1].NotBefore.IsZero() {
			t.Errorf("the event may be tried at once, and is read as not before %s", found[1].NotBefore)
		}
		if event.AggregateID != "" {
			outboxtest.RequireEmitted(t, pool, layout, outbox.Event{ID: event.ID, Key: event.AggregateType + "/" + event.AggregateID})
		}
		event.Payload = other.Payload
		if said := failure(t, func(t *failing) { outboxtest.RequireEmitted(t, pool, layout, event) }); !strings.Contains(said, "payload.amount is 12, want 13") {
			t.Errorf("said %q", said)
		}
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		pool := testdb.Pool(t)
		target := pgstream.Stream{Schema: "elsewhere"}
		if err := target.Migrate(t.Context(), pool, pgstream.Shape{}); err != nil {
			t.Fatal(err)
		}
		tenant := uuid.New()
		event := outbox.Event{
			ID: uuid.New(), Namespace: "shop", Topic: "bills", Type: "order.paid", AggregateType: "order", AggregateID: "42", Key: "k",
			TenantID: tenant, DedupeKey: tenant.String() + "/42", Payload: []byte{0xff}, Headers: map[string]string{"a": "b"},
			ContentType: "application/octet-stream", NotBefore: time.Now().Add(time.Hour), MaxAttempts: 3,
		}
		emit(t, pool, target, event)
		outboxtest.RequireEmitted(t, pool, target, event)
		event.Payload = []byte{0xfe}
		if said := failure(t, func(t *failing) { outboxtest.RequireEmitted(t, pool, target, event) }); !strings.Contains(said, `payload is "\xff", want "\xfe"`) {
			t.Errorf("said %q", said)
		}
	})
}

// TestRequireTransactions looks through each kind of transaction: an event is there before its commit.
func TestRequireTransactions(t *testing.T) {
	t.Parallel()
	pool := stream(t)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	emitter, err := outboxsql.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	scheduled := paid
	scheduled.NotBefore = time.Now().Add(time.Hour)
	if _, err := emitter.Emit(t.Context(), tx, scheduled); err != nil {
		t.Fatal(err)
	}
	outboxtest.RequireEmitted(t, tx, pgstream.Stream{}, scheduled)
	outboxtest.RequireNotEmitted(t, db, pgstream.Stream{})
	for _, none := range []any{nil, "", (*sql.Rows)(nil)} {
		if said := failure(t, func(t *failing) { outboxtest.RequireNotEmitted(t, none, pgstream.Stream{}) }); !strings.Contains(said, "is no transaction") {
			t.Errorf("%T: said %q", none, said)
		}
	}
	if said := failure(t, func(t *failing) { outboxtest.RequireNotEmitted(t, pool, nil) }); !strings.Contains(said, "is no target") {
		t.Errorf("said %q", said)
	}
	if said := failure(t, func(t *failing) { outboxtest.RequireNotEmitted(t, pool, pgstream.Stream{Schema: "none"}) }); !strings.Contains(said, "read the events of the stream") {
		t.Errorf("said %q", said)
	}
}

// TestRequireSaysEnough keeps the list of events readable, however many and large they are.
func TestRequireSaysEnough(t *testing.T) {
	t.Parallel()
	tx := begin(t, stream(t))
	events := make([]outbox.Event, 60)
	for i := range events {
		events[i] = outbox.Event{Type: "order.paid", Payload: []byte(`"` + strings.Repeat("ü", 1000) + `"`)}
	}
	if err := emitIn(t.Context(), tx, pgstream.Stream{}, events...); err != nil {
		t.Fatal(err)
	}
	said := failure(t, func(t *failing) {
		outboxtest.RequireEmitted(t, tx, pgstream.Stream{}, outbox.Event{Type: "order.placed"})
	})
	if !strings.Contains(said, "ü… (2002 bytes)\n") || !strings.HasSuffix(said, "and 10 more") || len(said) > 30_000 {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}
