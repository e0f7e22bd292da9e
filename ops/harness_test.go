package ops_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// harness is an outbox with events, on a fresh database.
type harness struct {
	*testing.T
	layout string
	pool   *pgxpool.Pool
	single *pgxpool.Pool
	store  outbox.Store
	outbox *ops.Outbox
	emits  outbox.Target
}

// everywhere runs a test on the stream and on every shipped layout, with an audit log.
func everywhere(t *testing.T, test func(h *harness)) {
	t.Helper()
	for _, layout := range []string{"standard", "modkit", "doorito", "packfinderz"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			test(newHarness(t, layout))
		})
	}
}

func newHarness(t *testing.T, layout string) *harness {
	t.Helper()
	h := bare(t, layout)
	files, err := audit.Migrations()
	h.must(err)
	pgtest.Migrate(t, h.pool, "", files)
	return h
}

// bare has no audit log.
func bare(t *testing.T, layout string) *harness {
	t.Helper()
	url := pgtest.URL(t)
	h := &harness{T: t, layout: layout, pool: pgtest.Connect(t, url)}
	// Operations do with a single connection.
	h.single = pgtest.Connect(t, url+"&pool_max_conns=1")
	var files fs.FS
	var err error
	if layout == pgstream.LayoutName {
		files, err = pgstream.Migrations(pgstream.Shape{})
	} else {
		shipped, _ := shipped.Find(layout)
		files, err = shipped.Migrations(shipped.Layout)
	}
	h.must(err)
	pgtest.Migrate(t, h.pool, "", files)
	if layout == pgstream.LayoutName {
		h.emits = pgstream.Stream{}
		h.outbox, err = ops.Stream(h.single, pgstream.Stream{}, "")
		h.must(err)
		return h
	}
	shipped, _ := shipped.Find(layout)
	h.emits = shipped.Layout
	h.store, err = pgstore.New(h.pool, shipped.Layout, pgstore.Config{})
	h.must(err)
	h.outbox, err = ops.Table(h.single, shipped.Layout)
	h.must(err)
	return h
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// emit emits events that differ as change says.
func (h *harness) emit(n int, change func(i int, event *outbox.Event)) []uuid.UUID {
	h.Helper()
	emitter, err := outboxpgx.New(h.emits, outbox.EmitConfig{})
	h.must(err)
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = layouttest.Event(h.layout)
		if change != nil {
			change(i, &events[i])
		}
	}
	ids := make([]uuid.UUID, n)
	h.must(pgx.BeginFunc(h.Context(), h.pool, func(tx pgx.Tx) error {
		emitted, err := emitter.EmitMany(h.Context(), tx, events)
		for i := range emitted {
			ids[i] = emitted[i].ID
		}
		return err
	}))
	return ids
}

// settle claims all there is, and settles it as a relay would that begins now.
func (h *harness) settle(outcome func(m *outbox.Message) outbox.Outcome) {
	h.Helper()
	if h.layout == pgstream.LayoutName {
		store, err := pgstream.Open(h.Context(), h.pool, pgstream.Stream{}, pgstream.Config{})
		h.must(err)
		defer store.Close()
		h.store = store
	}
	await.Until(h.T, "nothing to be left", func() bool {
		batch, err := h.store.Claim(h.Context(), outbox.ClaimRequest{Limit: 1000})
		h.must(err)
		defer batch.Abandon()
		messages := batch.Messages()
		if len(messages) == 0 {
			idler, ok := h.store.(outbox.Idler)
			if !ok {
				return true
			}
			idle, err := idler.Idle(h.Context())
			h.must(err)
			return idle
		}
		outcomes := make([]outbox.Outcome, len(messages))
		for i := range messages {
			outcomes[i] = outcome(&messages[i])
		}
		lost, err := batch.Settle(h.Context(), outcomes)
		h.must(err)
		if len(lost) > 0 {
			h.Fatalf("lost %v", lost)
		}
		return false
	})
}

// deliver delivers all there is.
func (h *harness) deliver() {
	h.Helper()
	h.settle(func(*outbox.Message) outbox.Outcome { return outbox.Outcome{Kind: outbox.Delivered} })
}

// kill makes some events dead, of an error, and delivers the others.
func (h *harness) kill(text string, ids ...uuid.UUID) {
	h.Helper()
	set := make(map[uuid.UUID]bool)
	for _, id := range ids {
		set[id] = true
	}
	h.settle(func(m *outbox.Message) outbox.Outcome {
		if set[m.ID] {
			return outbox.Outcome{Kind: outbox.Died, Error: text, Reason: outbox.ReasonTerminal}
		}
		return outbox.Outcome{Kind: outbox.Delivered}
	})
}

func (h *harness) list(filter ops.Filter) []ops.Event {
	h.Helper()
	listing, err := h.outbox.List(h.Context(), filter, ops.Page{})
	h.must(err)
	return listing.Events
}

func (h *harness) show(id uuid.UUID) *ops.Details {
	h.Helper()
	details, err := h.outbox.Show(h.Context(), id)
	h.must(err)
	return details
}

func (h *harness) audit() []audit.Entry {
	h.Helper()
	log, err := h.outbox.Audit(h.Context(), ops.Page{})
	h.must(err)
	if log.Missing != "" {
		h.Fatal(log.Missing)
	}
	return log.Entries
}

// exec runs a statement.
func (h *harness) exec(sql string, args ...any) {
	h.Helper()
	pgtest.Exec(h.T, h.pool, sql, args...)
}

const hour = time.Hour
