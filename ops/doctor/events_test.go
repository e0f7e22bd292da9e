package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// Events of each layout, as a producer writes them.
const (
	insertModkit = `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status)
		VALUES (gen_random_uuid(), 'shop', 'orders', '{}', 'pending')`
	insertDoorito = `INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, idempotency_key)
		VALUES (gen_random_uuid(), 'order', '1', 'placed', gen_random_uuid())`
	insertPackfinderz = `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES (gen_random_uuid(), 'order_created', 'vendor_order', gen_random_uuid(), '{}')`
	emit = `SELECT outbox_emit('placed', '{}', 'orders', p_key => 'order/1')`
)

// TestNoRelay lets events wait while nobody takes them, and then while somebody does.
func TestNoRelay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		layout layouts.Layout
		insert string
	}{
		"modkit":      {modkit.Layout(), insertModkit},
		"doorito":     {doorito.Layout(), insertDoorito},
		"packfinderz": {packfinderz.Layout(), insertPackfinderz},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTable(t, pgtest.Pool(t), name)
			p.isWell(t, "relays")
			pgtest.Exec(t, p.pool, c.insert)
			pgtest.Exec(t, p.pool, c.insert)
			p.isWell(t, "relays") // it has not waited long
			p.config = impatient
			p.finds(t, "relays", doctor.Problem, "2 events have been due for longer than", "and no relay holds any", "outbox relay --layout "+name)
			store, err := pgstore.New(p.pool, c.layout, pgstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer batch.Abandon()
			p.finds(t, "relays", doctor.Note, "due for longer than", "a relay is at work")
		})
	}
}

func TestNoRelayOfStream(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	pgtest.Exec(t, p.pool, emit)
	p.isWell(t, "relays")
	p.config = impatient
	p.finds(t, "relays", doctor.Problem, "subscription default: the first event has waited for", "no relay serves it", "outbox relay --subscription default")
	claim(t, openStream(t, p, pgstream.Config{}))
	p.finds(t, "relays", doctor.Note, "subscription default", "1 relay is at work")

	// A subscription waits only for what it takes.
	narrow := pgstream.Subscription{Name: "narrow", Filter: pgstream.Filter{
		Namespace: "shop", Topics: []string{"orders", "refunds"}, Types: []string{"placed"}, TenantID: uuid.New(),
	}}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), p.pool, narrow, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	if list := p.examine(t, "relays").Findings; len(list) != 1 {
		t.Errorf("the subscription waits for events that it does not take: %+v", list)
	}
	pgtest.Exec(t, p.pool, `SELECT outbox_emit('placed', '{}', 'orders', p_namespace => 'shop', p_tenant_id => $1)`, narrow.Filter.TenantID)
	p.finds(t, "relays", doctor.Problem, "subscription narrow", "no relay serves it")
}

func openStream(t *testing.T, p *patient, config pgstream.Config) *pgstream.Store {
	t.Helper()
	store, err := pgstream.Open(t.Context(), p.pool, pgstream.Stream{}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// TestExpiredLease leaves a claim behind, as a relay that was killed does.
func TestExpiredLease(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	pgtest.Exec(t, p.pool, insertModkit)
	store, err := pgstore.New(p.pool, modkit.Layout(), pgstore.Config{Lease: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	claim(t, store)
	awaitTrue(t, p.pool, `SELECT locked_until < now() - interval '1 ms' FROM modkit_outbox_events`)
	p.isWell(t, "stuck")
	p.config = impatient
	p.finds(t, "stuck", doctor.Problem, "the lease of 1 event has been over for longer than", "a relay died", "outbox relay --layout modkit")
}

func TestExpiredShards(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{Shards: 2})
	pgtest.Exec(t, p.pool, emit)
	// A relay that lives would renew the one lease while the other ends.
	pgtest.Exec(t, p.pool, `UPDATE outbox_shards SET owner = gen_random_uuid(), locked_until = now() - interval '1 minute'`)
	p.config = impatient
	p.finds(t, "stuck", doctor.Problem, "subscription default: the lease of 2 shards has been over", "no other took over")
}

// TestTimeless has events that no claim's condition is ever true for.
func TestTimeless(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for layout, sql := range map[string]string{
		"doorito": insertDoorito + `; UPDATE outbox_event SET next_attempt_at = NULL`,
		"modkit":  insertModkit + `; UPDATE modkit_outbox_events SET status = 'processing'`,
	} {
		p := newTable(t, pool, layout)
		pgtest.Exec(t, pool, sql)
		found := p.finds(t, "stuck", doctor.Problem, "1 event waits without a time to be tried at")
		pgtest.Exec(t, pool, found.Do)
		p.isWell(t, "stuck")
	}
}

// TestUnknownStatus has rows whose status is none that a relay knows.
func TestUnknownStatus(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for layout, table := range map[string]string{"doorito": "outbox_event", "modkit": "modkit_outbox_events"} {
		p := newTable(t, pool, layout)
		pgtest.Exec(t, pool, map[string]string{"doorito": insertDoorito, "modkit": insertModkit}[layout]+`; UPDATE `+table+` SET status = 'archived'`)
		found := p.finds(t, "stuck", doctor.Problem, "1 row has a status that the layout does not name")
		statement, _, _ := strings.Cut(found.Do, ";")
		if tag, err := pool.Exec(t.Context(), statement); err != nil || tag.RowsAffected() != 1 {
			t.Errorf("%s finds %d rows (%v)", statement, tag.RowsAffected(), err)
		}
		pgtest.Exec(t, pool, `UPDATE `+table+` SET status = 'delivered'`)
		p.isWell(t, "stuck")
	}
}

// TestRowsKeptLocked has somebody lock rows and go to lunch.
func TestRowsKeptLocked(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "packfinderz")
	pgtest.Exec(t, p.pool, insertPackfinderz)
	p.config = impatient
	p.config.Lease = time.Millisecond
	hold(t, p.pool, `SELECT FROM outbox_events FOR UPDATE`)
	p.finds(t, "stuck", doctor.Problem, `application "nightly report"`, `has kept rows of "outbox_events" locked for`, "pg_terminate_backend")
}

// TestBlockedKeys has keys that wait behind a dead, a held and a failing event.
func TestBlockedKeys(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	blocking := pgstream.Subscription{Name: "strict", OnDead: pgstream.DeadBlocks}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), p.pool, blocking, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pgtest.Exec(t, p.pool, emit)
	}
	outcome := map[string]outbox.Outcome{
		"strict":  {Kind: outbox.Died, Error: "refused", Reason: outbox.ReasonTerminal},
		"default": {Kind: outbox.Failed, Error: "timed out", Delay: time.Hour},
	}
	for name, first := range outcome {
		batch := claim(t, openStream(t, p, pgstream.Config{Subscription: name}))
		if len(batch.Messages()) != 3 {
			t.Fatalf("%d messages", len(batch.Messages()))
		}
		if _, err := batch.Settle(t.Context(), []outbox.Outcome{first, {}, {}}); err != nil {
			t.Fatal(err)
		}
	}
	p.config = impatient
	p.finds(t, "keys", doctor.Problem, "subscription strict: 1 key waits behind a dead event, with 2 events behind",
		`key "order/1"`, "outbox retry --subscription strict ")
	p.finds(t, "keys", doctor.Note, "subscription default: 1 key waits behind an event that is being retried", "timed out")
	pgtest.Exec(t, p.pool, `UPDATE outbox_parked SET state = 'held' WHERE state = 'dead'`)
	p.finds(t, "keys", doctor.Warning, "subscription strict: 1 key waits behind a held event", "outbox release --subscription strict ")
}

// TestRetention keeps delivered events for longer than they should be.
func TestRetention(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for layout, sql := range map[string]string{
		"modkit": insertModkit + `; UPDATE modkit_outbox_events SET status = 'delivered', next_attempt_at = now() - interval '40 days',
			updated_at = now() - interval '40 days'`,
		"doorito":     insertDoorito + `; UPDATE outbox_event SET status = 'delivered', delivered_at = now() - interval '40 days'`,
		"packfinderz": insertPackfinderz + `; UPDATE outbox_events SET published_at = now() - interval '40 days'`,
	} {
		p := newTable(t, pool, layout)
		pgtest.Exec(t, pool, sql)
		p.finds(t, "retention", doctor.Warning, "1 event was delivered more than 30 days ago", "outbox purge --layout "+layout, "--retention 720h")
		p.config.Retention = 50 * 24 * time.Hour
		p.isWell(t, "retention")
	}
	p := newStream(t, pool, pgstream.Shape{})
	pgtest.Exec(t, pool, `SELECT outbox_emit('placed', '{}', 'orders', p_dedupe_key => 'one')`)
	settleAll(t, p, pgstream.DefaultSubscription)
	p.isWell(t, "retention")
	pgtest.Exec(t, pool, `UPDATE outbox_dedupe SET created_at = created_at - interval '40 days'`)
	pgtest.Exec(t, pool, `UPDATE outbox_deliveries SET settled_at = settled_at - interval '40 days'`)
	p.finds(t, "retention", doctor.Warning, "the oldest deliveries are 40 days old, more than 30 days")
	p.finds(t, "retention", doctor.Warning, "the oldest dedupe keys are 40 days old", "outbox purge --retention 720h")
}

func settleAll(t *testing.T, p *patient, subscription string) {
	t.Helper()
	store := openStream(t, p, pgstream.Config{Subscription: subscription})
	batch := claim(t, store)
	outcomes := make([]outbox.Outcome, len(batch.Messages()))
	for i := range outcomes {
		outcomes[i].Kind = outbox.Delivered
	}
	if _, err := batch.Settle(t.Context(), outcomes); err != nil {
		t.Fatal(err)
	}
}

// TestRing lets a ring of three seconds turn while a subscription does not read, and then
// while nobody is there to empty it.
func TestRing(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{Slots: 3, SlotLength: time.Second})
	pgtest.Exec(t, p.pool, emit)
	awaitTrue(t, p.pool, `SELECT created_at < now() - interval '3.1 s' FROM outbox_stream`)
	p.finds(t, "retention", doctor.Warning, "was not emptied in its turn", "the ring turns in 3s", "not settled by default", "Run a relay for default")
	settleAll(t, p, pgstream.DefaultSubscription)
	p.finds(t, "retention", doctor.Warning, "every subscription has settled it", "outbox purge --retention 3s")
}

// TestStoppedTopics has a topic that takes nothing: a note at first, a warning when it lasts.
func TestStoppedTopics(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	p.isWell(t, "topics")
	pgtest.Exec(t, p.pool, emit)
	pgtest.Exec(t, p.pool, emit)
	store := openStream(t, p, pgstream.Config{})
	batch := claim(t, store)
	// The relay says at its next claim that the topic is closed; before, the store would let the events go on.
	nothing, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10, Closed: outbox.ClosedRoutes{Topics: []string{"orders"}}})
	if err != nil {
		t.Fatal(err)
	}
	nothing.Abandon()
	outcome := outbox.Outcome{Kind: outbox.Stopped, Topic: "orders", Error: "no stream orders"}
	if len(batch.Messages()) != 2 {
		t.Fatalf("%d messages", len(batch.Messages()))
	}
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{outcome, outcome}); err != nil {
		t.Fatal(err)
	}
	p.finds(t, "topics", doctor.Note, `subscription default: topic "orders" takes nothing; 2 events wait for it`, "no stream orders")
	p.config = impatient
	p.finds(t, "topics", doctor.Warning, `topic "orders" takes nothing`, "outbox list --subscription default --state stopped")
	newTable(t, pgtest.Pool(t), "modkit").isWell(t, "topics")
}

// TestHalfMadeSubscription has one whose making broke off, and one whose name is refused today.
func TestHalfMadeSubscription(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{})
	p.config = impatient
	pgtest.Exec(t, p.pool, `INSERT INTO outbox_subscriptions (name, ready, created_at) VALUES ('half made', false, now() - interval '1 hour')`)
	pgtest.Exec(t, p.pool, `INSERT INTO outbox_subscriptions (name) VALUES ('a/b')`)
	found := p.finds(t, "subscriptions", doctor.Warning, "half made", "is unfinished")
	if !strings.Contains(found.Do, "outbox subscriptions drop -- 'half made'") {
		t.Errorf("what to do is %q", found.Do)
	}
	p.finds(t, "subscriptions", doctor.Note, "a/b")
	pgtest.Exec(t, p.pool, `UPDATE outbox_subscriptions SET created_at = now() + interval '1 hour'`)
	pgtest.Exec(t, p.pool, `DELETE FROM outbox_subscriptions WHERE name = 'a/b'`)
	for _, finding := range p.examine(t, "subscriptions").Findings {
		if finding.Severity != doctor.OK {
			t.Errorf("one that is being made is found: %+v", finding)
		}
	}
}
