//go:build unix

package endtoend

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

const (
	consumerName = "effects"
	// lostAck is of how many events one acknowledgement is lost.
	lostAck = 50
)

var errLost = errors.New("the acknowledgement is lost")

// effects are the handlers of a consumer. The effect of an event is a row, in a table that takes
// any number of them.
type effects struct {
	t     *testing.T
	pool  *pgxpool.Pool
	inbox *pginbox.Inbox

	mu    sync.Mutex
	times map[uuid.UUID]int // how often each event was delivered
}

// open makes the tables. Nothing may be delivered before.
func (e *effects) open(t *testing.T, url string) {
	t.Helper()
	e.t, e.pool, e.times = t, pgtest.Connect(t, url), make(map[uuid.UUID]int)
	files, err := pginbox.Migrations(pginbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, e.pool, "public", files)
	pgtest.Exec(t, e.pool, "CREATE TABLE effects (event_id uuid NOT NULL)")
	if e.inbox, err = pginbox.New(pginbox.Config{}); err != nil {
		t.Fatal(err)
	}
}

// Publish handles messages. It fails after the effect of some, as when the acknowledgement is
// lost: duplicates that no broker can know of.
func (e *effects) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		_, errs[i] = e.inbox.Handle(ctx, e.pool, consumerName, messages[i].ID, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ($1)", messages[i].ID)
			return err
		})
		if e.count(messages[i].ID) && errs[i] == nil {
			errs[i] = errLost
		}
	}
	return errs
}

// count counts a delivery, and reports whether its acknowledgement is to be lost.
func (e *effects) count(event uuid.UUID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times[event]++
	return e.times[event] == 1 && len(e.times)%lostAck == 0
}

func (e *effects) deliveries() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.times {
		n += times
	}
	return n
}

// awaitAll waits until so many events were delivered, and nothing is left.
func (e *effects) awaitAll(events int, idle func() bool) {
	e.t.Helper()
	seen := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.times)
	}
	await.Until(e.t, "every event to be delivered, and nothing to be left", func() bool { return seen() >= events && idle() })
}

// check counts the effects. Without duplicates they would prove nothing.
func (e *effects) check(emitted map[uuid.UUID]*event) {
	e.t.Helper()
	if more := e.deliveries() - len(emitted); more < len(emitted)/lostAck {
		e.t.Errorf("only %d deliveries were duplicates", more)
	}
	rows, err := e.pool.Query(e.t.Context(), "SELECT event_id, count(*) FROM effects GROUP BY event_id")
	if err != nil {
		e.t.Fatal(err)
	}
	var id uuid.UUID
	var times, events, twice int
	_, err = pgx.ForEachRow(rows, []any{&id, &times}, func() error {
		events++
		if times > 1 {
			twice++
		}
		if emitted[id] == nil {
			e.t.Errorf("event %s has an effect and was not emitted", id)
		}
		return nil
	})
	if err != nil || events != len(emitted) || twice > 0 {
		e.t.Errorf("%d of %d events had an effect, %d of them several: %v", events, len(emitted), twice, err)
	}
}
