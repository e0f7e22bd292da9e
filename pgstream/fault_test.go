package pgstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// symptom is how a mistake shows.
type symptom string

const (
	lost     symptom = "lost"
	repeated symptom = "repeated"
	inverted symptom = "inverted"
)

// fault is a mistake that loses, repeats or inverts events, and a script of a few
// transactions in which it does. The script runs twice: as the code is, and with the mistake
// put back.
type fault struct {
	name   string
	put    func(s *stage, sql *statements) // nil where the script puts it back itself
	script func(s *stage)
	shows  symptom
}

// testFaults runs scripts one after the other, on a server on which nothing else happens.
func testFaults(t *testing.T, faults ...fault) {
	t.Helper()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, faulty := range []bool{false, true} {
				t.Run(map[bool]string{false: "right", true: "fault put back"}[faulty], func(t *testing.T) {
					t.Parallel()
					s := quietStage(t)
					if faulty {
						s.faulty, s.put = true, f.put
					}
					f.script(s)
					s.judge(f.shows)
				})
			}
		})
	}
}

// stage is a stream of one shard on a fresh database, with what was committed and published.
type stage struct {
	*testing.T
	url  string
	pool *pgxpool.Pool

	faulty bool
	put    func(s *stage, sql *statements)
	stores []*Store

	committed []event
	published []uuid.UUID
}

// event is one that was committed.
type event struct {
	id  uuid.UUID
	key string
}

// quiet is a server on which nothing happens but the scripts, one at a time: which
// transactions a snapshot lists depends on every other transaction of the server. It ends
// with the process.
var quiet = sync.OnceValues(func() (*pgserver.Server, error) {
	settings := pgserver.TestSettings()
	settings["autovacuum"] = "off"
	return pgserver.Start(context.Background(), pgserver.Config{Settings: settings})
})

var quietTurn sync.Mutex

func quietStage(t *testing.T) *stage {
	t.Helper()
	quietTurn.Lock()
	t.Cleanup(quietTurn.Unlock)
	server, err := quiet()
	if err != nil {
		t.Fatal(err)
	}
	// A schema of its own, which is quicker than a database.
	schema := "stage_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	pgtest.Exec(t, connect(t, server.URL("postgres")), "CREATE SCHEMA "+schema)
	return newStage(t, server.URL("postgres")+"&search_path="+schema, Shape{Shards: 1})
}

// newStage makes a stream on an empty database.
func newStage(t *testing.T, url string, shape Shape) *stage {
	t.Helper()
	s := &stage{T: t, url: url, pool: connect(t, url)}
	files, err := Migrations(shape)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, s.pool, "", files)
	return s
}

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20 // each producer in the middle of something has one
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// open opens a store, with the mistake if it is to have it.
func (s *stage) open(config Config) *Store {
	s.Helper()
	store, err := Open(s.Context(), s.pool, Stream{}, config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(store.Close)
	if s.put != nil {
		s.put(s, store.sql)
	}
	s.stores = append(s.stores, store)
	return store
}

// swap changes a statement, and fails if there is nothing to change.
func (s *stage) swap(sql *string, from, to string) {
	s.Helper()
	if !strings.Contains(*sql, from) {
		s.Fatalf("the fault cannot be put back: there is no %q in %s", from, *sql)
	}
	*sql = strings.ReplaceAll(*sql, from, to)
}

// swapAll changes several statements.
func (s *stage) swapAll(statements []*string, from, to string) {
	s.Helper()
	for _, sql := range statements {
		s.swap(sql, from, to)
	}
}

// openers are the statements that open windows.
func (sql *statements) openers() []*string { return []*string{&sql.open, &sql.openPunctual} }

// producer is a transaction that emits.
type producer struct {
	s      *stage
	tx     pgx.Tx
	events []event
}

func (s *stage) begin() *producer { return s.beginOn(s.pool) }

func (s *stage) beginOn(db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}) *producer {
	s.Helper()
	tx, err := db.Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return &producer{s: s, tx: tx}
}

// slotSQL is a producer's insert into a slot of the test's choice; NULL for the current one.
const slotSQL = `
INSERT INTO outbox_stream (slot, shard, id, topic, type, key, payload)
SELECT coalesce($4, floor(extract(epoch FROM now()) / o.slot_seconds)::bigint % o.slots),
  outbox_shard($2, $1), $1, 'orders', 'made', $2, $3 FROM outbox_settings AS o`

// insert emits one event per key; "" is no key.
func (p *producer) insert(keys ...string) *producer {
	p.s.Helper()
	for _, key := range keys {
		p.insertInto(nil, key, nil)
	}
	return p
}

func (p *producer) insertInto(slot *int, key string, payload []byte) *producer {
	p.s.Helper()
	id := uuid.New()
	var nullable *string
	if key != "" {
		nullable = &key
	}
	if payload == nil {
		payload = []byte("{}")
	}
	if _, err := p.tx.Exec(p.s.Context(), slotSQL, id, nullable, payload, slot); err != nil {
		p.s.Fatal(err)
	}
	p.events = append(p.events, event{id, key})
	return p
}

func (p *producer) commit() []uuid.UUID {
	p.s.Helper()
	if err := p.tx.Commit(p.s.Context()); err != nil {
		p.s.Fatal(err)
	}
	var ids []uuid.UUID
	for _, e := range p.events {
		ids = append(ids, e.id)
	}
	p.s.committed = append(p.s.committed, p.events...)
	return ids
}

// emit commits one event per key.
func (s *stage) emit(keys ...string) []uuid.UUID {
	s.Helper()
	return s.begin().insert(keys...).commit()
}

func (s *stage) exec(sql string, args ...any) {
	s.Helper()
	pgtest.Exec(s.T, s.pool, sql, args...)
}

// scan reads one row.
func (s *stage) scan(sql string, into ...any) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql).Scan(into...); err != nil {
		s.Fatal(err)
	}
}

// claim claims up to n events and fails unless n come.
func (s *stage) claim(store *Store, n int) outbox.Batch {
	s.Helper()
	return s.claimUpTo(store, n, n)
}

// claimAll claims whatever there is and fails unless it is so many events.
func (s *stage) claimAll(store *Store, want int) outbox.Batch {
	s.Helper()
	return s.claimUpTo(store, 100, want)
}

func (s *stage) claimUpTo(store *Store, limit, want int) outbox.Batch {
	s.Helper()
	batch := s.tryClaim(store, limit)
	// What was read ahead may have been the empty end of a window: the claim that passes it finds nothing.
	for tries := 0; len(batch.Messages()) == 0 && tries < 3; tries++ {
		batch = s.tryClaim(store, limit)
	}
	if got := len(batch.Messages()); got != want {
		s.Fatalf("claimed %d events, want %d", got, want)
	}
	return batch
}

func (s *stage) tryClaim(store *Store, n int) outbox.Batch {
	s.Helper()
	batch, err := store.Claim(s.Context(), outbox.ClaimRequest{Limit: n})
	if err != nil {
		s.Fatal(err)
	}
	return batch
}

// idle has a store take its shards, and find nothing.
func (s *stage) idle(store *Store) {
	s.Helper()
	s.claim(store, 0)
}

// publish is the publisher's acknowledgement.
func (s *stage) publish(batch outbox.Batch, outcomes ...outbox.Outcome) {
	for i, message := range batch.Messages() {
		if len(outcomes) == 0 || outcomes[i].Kind == outbox.Delivered {
			s.published = append(s.published, message.ID)
		}
	}
}

// settle writes what became of a batch; nothing is all delivered.
func (s *stage) settle(batch outbox.Batch, outcomes ...outbox.Outcome) (lost []uuid.UUID) {
	s.Helper()
	if len(outcomes) == 0 {
		outcomes = make([]outbox.Outcome, len(batch.Messages()))
		for i := range outcomes {
			outcomes[i] = delivered
		}
	}
	lost, err := batch.Settle(s.Context(), outcomes)
	if err != nil {
		s.Fatal(err)
	}
	batch.Abandon()
	return lost
}

// deliver publishes and settles.
func (s *stage) deliver(batch outbox.Batch) {
	s.Helper()
	s.publish(batch)
	s.settle(batch)
}

// drain is the whole of a relay: it claims, publishes and settles until nothing comes.
func (s *stage) drain(store *Store) {
	s.Helper()
	for empty := 0; empty < 2; {
		batch := s.tryClaim(store, 10)
		if len(batch.Messages()) == 0 {
			empty++
			continue
		}
		empty = 0
		s.deliver(batch)
	}
}

// drainParked is drain while time passes: parked events that become due come, too.
func (s *stage) drainParked(store *Store) {
	s.Helper()
	for before := -1; before < len(s.published); {
		before = len(s.published)
		store.PassTime()
		s.drain(store)
	}
}

// ripen makes the retries due.
func (s *stage) ripen() {
	s.Helper()
	s.exec(`UPDATE outbox_parked SET next_attempt_at = now() WHERE state = 'retry'`)
}

// expire ends all leases, as time would, once no store is busy behind the script's back.
func (s *stage) expire() {
	s.Helper()
	for _, store := range s.stores {
		store.AwaitReadAhead()
	}
	s.exec(`UPDATE outbox_shards SET locked_until = locked_until - interval '1 day'`)
	s.exec(`UPDATE outbox_relays SET alive_until = alive_until - interval '1 day'`)
}

// takeOver opens a store that gets what all others had.
func (s *stage) takeOver() *Store {
	s.Helper()
	s.expire()
	return s.open(Config{})
}

// story is what became of the events, in words.
func (s *stage) story() map[symptom][]string {
	found := make(map[symptom][]string)
	times, first := make(map[uuid.UUID]int), make(map[uuid.UUID]int)
	for i, id := range s.published {
		if times[id] == 0 {
			first[id] = i
		}
		times[id]++
	}
	last := make(map[string]int)
	for i, e := range s.committed {
		name := fmt.Sprintf("event %d (key %q)", i, e.key)
		switch {
		case times[e.id] == 0:
			found[lost] = append(found[lost], name)
			continue
		case times[e.id] > 1:
			found[repeated] = append(found[repeated], name)
		}
		if e.key == "" {
			continue
		}
		if first[e.id] < last[e.key] {
			found[inverted] = append(found[inverted], name)
		}
		last[e.key] = max(last[e.key], first[e.id])
	}
	return found
}

// judge fails unless everything arrived once and in order, or, with the fault, unless it
// shows.
func (s *stage) judge(shows symptom) {
	s.Helper()
	story := s.story()
	switch {
	case len(s.committed) == 0:
		s.Error("the script committed nothing")
	case !s.faulty && len(story) > 0:
		s.Errorf("with the right code: %v", story)
	case s.faulty && len(story[shows]) == 0:
		s.Errorf("with the fault nothing was %s; the script cannot find it: %v", shows, story)
	}
}

var (
	delivered = outbox.Outcome{Kind: outbox.Delivered}
	released  = outbox.Outcome{Kind: outbox.Released}
	failedNow = outbox.Outcome{Kind: outbox.Failed, Error: "not now"}
	diedNow   = outbox.Outcome{Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}
)

// failedFor is a failure that is tried again after some time.
func failedFor(delay time.Duration) outbox.Outcome {
	return outbox.Outcome{Kind: outbox.Failed, Error: "not now", Delay: delay}
}

// ids are the events of a batch.
func idsOf(batch outbox.Batch) []uuid.UUID {
	var list []uuid.UUID
	for _, message := range batch.Messages() {
		list = append(list, message.ID)
	}
	return list
}

// wantIDs fails unless a batch has exactly these events, in this order.
func (s *stage) wantIDs(batch outbox.Batch, want ...uuid.UUID) {
	s.Helper()
	if got := idsOf(batch); !slices.Equal(got, want) {
		s.Fatalf("claimed %v, want %v", got, want)
	}
}
