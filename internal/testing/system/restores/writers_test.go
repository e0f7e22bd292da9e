//go:build unix

package restores

// The producers. Each has keys of its own, so that the versions of a key rise in the order of its commits.

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	writerCount   = 4
	keysPerWriter = 6
	// padding makes an event so large that a pipe has room for a few dozen.
	padding = 1000
)

// The topics. One subscription takes all events, the other those of one topic.
const (
	ordersTopic  = "orders"
	refundsTopic = "refunds"
)

// event is what the test knows about one.
type event struct {
	topic, key string
	version    int64 // its place among those of its key; zero for none
}

// writers write events to one database after the other.
type writers struct {
	// nested makes them use savepoints and prepared transactions, beside plain transactions.
	nested bool

	mu       sync.Mutex
	versions map[string]int64
	emitted  map[uuid.UUID]event // what was committed
	prepared int                 // how many transactions were prepared
	inside   int                 // how many events were written in savepoints
	undone   int                 // how many were rolled back to one
}

func newWriters(nested bool) *writers {
	return &writers{nested: nested, versions: make(map[string]int64), emitted: make(map[uuid.UUID]event)}
}

// clone are writers that go on where these are, and leave these as they are.
func (w *writers) clone() *writers {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &writers{nested: w.nested, versions: maps.Clone(w.versions), emitted: maps.Clone(w.emitted)}
}

// write commits at least n events, with all writers side by side.
func (w *writers) write(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	var group sync.WaitGroup
	problems := make(chan error, writerCount)
	for number := range writerCount {
		group.Go(func() {
			for written := 0; written < n/writerCount+1; {
				did, err := w.transaction(t.Context(), pool, number)
				if err != nil {
					problems <- err
					return
				}
				written += did
			}
		})
	}
	group.Wait()
	close(problems)
	for err := range problems {
		t.Fatal(err)
	}
}

// transaction commits some events of one writer.
func (w *writers) transaction(ctx context.Context, pool *pgxpool.Pool, writer int) (int, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	s := &script{w: w, conn: conn, events: make(map[uuid.UUID]event)}
	s.exec(ctx, `BEGIN`)
	for range 1 + rand.IntN(4) {
		key := ""
		if rand.IntN(4) > 0 {
			key = fmt.Sprintf("key-%d-%d", writer, rand.IntN(keysPerWriter))
		}
		topic := ordersTopic
		if rand.IntN(3) == 0 {
			topic = refundsTopic
		}
		switch {
		case w.nested && rand.IntN(4) == 0:
			s.undo(ctx, topic)
			fallthrough
		case w.nested && rand.IntN(2) == 0:
			s.exec(ctx, `SAVEPOINT kept`)
			s.emit(ctx, topic, key, nil)
			s.exec(ctx, `RELEASE SAVEPOINT kept`)
			s.inside++
		default:
			s.emit(ctx, topic, key, nil)
		}
	}
	if w.nested && rand.IntN(4) == 0 {
		name := s.prepare(ctx)
		s.exec(ctx, `COMMIT PREPARED '`+name+`'`)
	} else {
		s.exec(ctx, `COMMIT`)
	}
	return len(s.events), s.end(ctx)
}

// special commits one event with settings of its own.
func (w *writers) special(t *testing.T, pool *pgxpool.Pool, topic, key string, more map[string]any) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	s := &script{w: w, conn: conn, events: make(map[uuid.UUID]event)}
	s.emit(t.Context(), topic, key, more)
	if err := s.end(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// open is a transaction that has events and has not ended. Commit ends it; until then nobody knows of them.
type open struct {
	script *script
	name   string // of a prepared transaction
}

// begin leaves a transaction open, prepared if these writers do such things.
func (w *writers) begin(t *testing.T, pool *pgxpool.Pool, key string) *open {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := &open{script: &script{w: w, conn: conn, events: make(map[uuid.UUID]event)}}
	o.script.exec(t.Context(), `BEGIN`)
	for range 3 {
		o.script.emit(t.Context(), ordersTopic, key, nil)
	}
	if w.nested {
		o.name = o.script.prepare(t.Context())
	}
	if o.script.err != nil {
		t.Fatal(o.script.err)
	}
	t.Cleanup(func() {
		if o.script == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		o.finish(ctx, `ROLLBACK`)
		o.script.conn.Release()
	})
	return o
}

func (o *open) finish(ctx context.Context, sql string) {
	if o.name != "" {
		sql += ` PREPARED '` + o.name + `'`
	}
	o.script.exec(ctx, sql)
}

func (o *open) commit(t *testing.T) {
	t.Helper()
	o.finish(t.Context(), `COMMIT`)
	if err := o.script.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.script.conn.Release()
	o.script = nil
}

// script is a transaction under way. The first error ends it.
type script struct {
	w        *writers
	conn     *pgxpool.Conn
	events   map[uuid.UUID]event
	prepared int
	inside   int
	undone   int
	err      error
}

func (s *script) exec(ctx context.Context, sql string) {
	if s.err == nil {
		_, s.err = s.conn.Exec(ctx, sql)
	}
}

// emit writes the next event of a key.
func (s *script) emit(ctx context.Context, topic, key string, more map[string]any) uuid.UUID {
	if s.err != nil {
		return uuid.Nil
	}
	event := event{topic: topic, key: key}
	if key != "" {
		s.w.mu.Lock()
		s.w.versions[key]++
		event.version = s.w.versions[key]
		s.w.mu.Unlock()
	}
	var id uuid.UUID
	s.err = s.conn.QueryRow(ctx, `
		SELECT outbox_emit(p_type => 'changed', p_payload => jsonb_build_object('version', $1::bigint, 'padding', repeat('x', $2)),
			p_topic => $3, p_key => $4, p_not_before => $5, p_max_attempts => $6)`,
		event.version, padding, topic, key, more["not_before"], more["max_attempts"]).Scan(&id)
	s.events[id] = event
	return id
}

// undo writes an event that is taken back. It leaves a gap in xids and in seqs.
func (s *script) undo(ctx context.Context, topic string) {
	s.exec(ctx, `SAVEPOINT undone`)
	delete(s.events, s.emit(ctx, topic, "", nil))
	s.exec(ctx, `ROLLBACK TO SAVEPOINT undone`)
	s.undone++
}

func (s *script) prepare(ctx context.Context) (name string) {
	name = strings.ReplaceAll(uuid.NewString(), "-", "_")
	s.exec(ctx, `PREPARE TRANSACTION '`+name+`'`)
	s.prepared++
	return name
}

// end puts what was committed on record. A transaction that failed is rolled back.
func (s *script) end(ctx context.Context) error {
	if s.err != nil {
		_, _ = s.conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`) // the first error is the one to tell of
		return fmt.Errorf("write events: %w", s.err)
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	maps.Copy(s.w.emitted, s.events)
	s.w.prepared += s.prepared
	s.w.inside += s.inside
	s.w.undone += s.undone
	return nil
}
