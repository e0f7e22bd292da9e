package pgstream

import (
	"bytes"
	"context"
	"errors"
	"slices"
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

// sharedStage is a stream on the server that all tests share.
func sharedStage(t *testing.T, shards int) *stage {
	t.Helper()
	return newStage(t, pgtest.URL(t), Shape{Shards: shards})
}

// TestDutiesInABacklog has a page ready at every claim. Leases are kept, and parked events
// tried, all the same.
func TestDutiesInABacklog(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	all := s.emit(make([]string, 100)...)
	batch := s.claim(store, 10)
	outcomes := slices.Repeat([]outbox.Outcome{delivered}, 10)
	outcomes[0] = failedNow
	s.settle(batch, outcomes...)
	s.exec(`UPDATE outbox_relays SET alive_until = now()`)
	store.PassTime()
	var parked []uuid.UUID
	for range 2 { // one of them may be a page that has been read
		store.AwaitReadAhead()
		batch = s.tryClaim(store, 10)
		if len(batch.Messages()) == 1 {
			parked = append(parked, batch.Messages()[0].ID)
		}
		s.deliver(batch)
	}
	if !slices.Equal(parked, all[:1]) {
		t.Errorf("the parked events %v had their turn, want %v", parked, all[0])
	}
	var alive bool
	s.scan(`SELECT alive_until > now() FROM outbox_relays`, &alive)
	if !alive {
		t.Error("the relay was not kept listed")
	}
}

// TestPauseLongerThanTheLease has a page ready in memory, of a shard that is another's by
// then: handing it out would only make duplicates.
func TestPauseLongerThanTheLease(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit(make([]string, 20)...)
	s.deliver(s.claim(store, 10))
	store.AwaitReadAhead()
	s.drain(s.takeOver())
	store.mu.Lock()
	store.sureUntil = time.Now()
	store.tendAt = time.Now()
	store.mu.Unlock()
	s.claimAll(store, 0)
	s.judge("")
}

// TestLostAnswerToTake has a store's shards taken in the table only: the answer was lost, with
// the connection. It need not wait for the lease.
func TestLostAnswerToTake(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 8)
	store := s.open(Config{})
	s.exec(`UPDATE outbox_shards SET owner = $1, fence = fence + 1, locked_until = now() + interval '1 hour'`, store.WorkerID())
	s.emit("a", "b", "c", "d", "e")
	s.drain(store)
	s.judge("")
}

// TestStatementOnItsWay has the reader's session lost while its statement waits for the
// cursor's row. The statement happens all the same, after the store has connected again.
func TestStatementOnItsWay(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	numbers, fences := store.owned()
	renewal := s.begin()
	if _, err := renewal.tx.Exec(t.Context(), `UPDATE outbox_shards SET locked_until = locked_until + interval '1 s'`); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := s.pool.Exec(t.Context(), store.sql.open, DefaultSubscription, numbers, fences, 10, nil)
		opened <- err
	}()
	pgtest.AwaitBlocked(s, s.pool, 1)
	store.reading <- struct{}{}
	store.disconnect()
	store.doneReading()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.drain(store)
	}()
	pgtest.AwaitBlocked(s, s.pool, 2)
	renewal.commit()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	<-drained
	s.emit("b")
	s.drain(store)
	s.judge("")
}

// TestFencesDiffer takes a shard again after the first take was undone, as by a crash.
func TestFencesDiffer(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	undone := s.begin()
	var numbers []int16
	rows, err := undone.tx.Query(t.Context(), store.sql.take, DefaultSubscription, store.WorkerID(), 30.0, 1, numbers, store.generation())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.loadCursors(rows); err != nil {
		t.Fatal(err)
	}
	_, before := store.owned()
	if err := undone.tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.idle(store)
	if _, after := store.owned(); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("the fences are %v and %v", before, after)
	}
}

// TestCloseWhileReading closes a store whose read nobody waits for, and which hangs.
func TestCloseWhileReading(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit(make([]string, 30)...)
	s.deliver(s.claim(store, 10))
	store.AwaitReadAhead()
	locker := s.begin()
	if _, err := locker.tx.Exec(t.Context(), `LOCK TABLE outbox_stream`); err != nil {
		t.Fatal(err)
	}
	batch := s.claim(store, 10)
	pgtest.AwaitBlocked(s, s.pool, 1)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		store.Close()
	}()
	select {
	case <-closed:
	case <-time.After(leaveTimeout):
		t.Error("closing takes as long as the read")
	}
	locker.commit()
	<-closed
	batch.Abandon()
	if _, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); !errors.Is(err, errClosed) {
		t.Errorf("a closed store claims: %v", err)
	}
}

// TestDroppedSubscription drops the subscription under a store.
func TestDroppedSubscription(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{})
	s.emit("a", "b", "c")
	batch := s.claimAll(store, 3)
	if err := (Stream{}).DropSubscription(t.Context(), s.pool, DefaultSubscription, Forced()); err != nil {
		t.Fatal(err)
	}
	if lost := s.settle(batch); len(lost) != 3 {
		t.Errorf("%d events were lost to the drop, want 3", len(lost))
	}
	store.PassTime()
	if _, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); !errors.Is(err, outbox.ErrGone) {
		t.Errorf("a claim says %v", err)
	}
}

// TestTwoConnections has no connection to spare.
func TestTwoConnections(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 8)
	store := s.open(Config{Connections: 2})
	for range 5 {
		s.emit("a", "b", "c", "d", "e", "f", "g", "h")
	}
	outcomes := 0
	for len(s.published) < len(s.committed) {
		batch := s.tryClaim(store, 2)
		if outcomes++; outcomes%3 == 0 && len(batch.Messages()) > 0 {
			if err := batch.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.settle(batch, slices.Repeat([]outbox.Outcome{failedNow}, len(batch.Messages()))...)
			store.PassTime()
			continue
		}
		s.deliver(batch)
		if _, err := store.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.judge("")
}

// TestLargePayloads cuts pages by their bytes.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{})
	payload := bytes.Repeat([]byte("x"), 600<<10)
	for _, key := range []string{"a", "b", "a", "b", "c", "c", "a", "b", "a", "b", "a", "b", "a", "b", "a", "a", "b", "a", "b"} {
		s.begin().insertInto(nil, key, payload).commit()
	}
	batch := s.tryClaim(store, 100)
	size := 0
	for _, message := range batch.Messages() {
		size += len(message.Payload)
	}
	if size > 2*(pageBytes+len(payload)) {
		t.Errorf("a batch of two shards has %d bytes", size)
	}
	s.deliver(batch)
	s.drain(store)
	s.judge("")
}

// TestSmallerClaims claims less than a page that was read before.
func TestSmallerClaims(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{})
	for range 10 {
		s.emit("a", "b", "c", "d")
	}
	s.deliver(s.claim(store, 1))
	for n := 20; n > 0; n /= 2 {
		batch := s.tryClaim(store, n)
		if len(batch.Messages()) > n {
			t.Fatalf("claimed %d events, more than %d", len(batch.Messages()), n)
		}
		s.deliver(batch)
	}
	s.drain(store)
	s.judge("")
}

// TestSplitPage claims less than the last page of a window, which was read before: the window ends with the second half.
func TestSplitPage(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit(repeat("a", 30)...)
	s.deliver(s.claim(store, 20))
	store.AwaitReadAhead()
	s.deliver(s.claim(store, 3))
	s.drain(s.takeOver())
	s.judge("")
}

// TestCancelledClaims cancels claims at every moment. None of them may take anything along.
func TestCancelledClaims(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{})
	s.emit("a", "b", "c", "d")
	locker := s.begin()
	if _, err := locker.tx.Exec(t.Context(), `LOCK TABLE outbox_shards`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := store.Claim(ctx, outbox.ClaimRequest{Limit: 10})
		cancelled <- err
	}()
	pgtest.AwaitBlocked(s, s.pool, 1)
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("the claim says %v", err)
	}
	locker.commit()
	for delay := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(delay)*200*time.Microsecond)
		if batch, err := store.Claim(ctx, outbox.ClaimRequest{Limit: 1}); err == nil {
			s.deliver(batch)
		}
		cancel()
		store.PassTime()
	}
	s.drainParked(store)
	s.judge("")
}

// TestSerializableDefault has a database whose transactions are serializable by default.
func TestSerializableDefault(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	config := s.pool.Config()
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.pool = pool
	store := s.open(Config{})
	var level string
	if err := store.own.QueryRow(t.Context(), `SHOW transaction_isolation`).Scan(&level); err != nil || level != "read committed" {
		t.Errorf("the store's sessions are %s: %v", level, err)
	}
	s.emit("a", "b", "a")
	s.drain(store)
	s.judge("")
}

// TestKilledSessions ends the store's sessions between and during its statements.
func TestKilledSessions(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 4)
	store := s.open(Config{})
	kill := func() {
		s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)
		s.pool.Reset()
	}
	for range 5 {
		s.emit("a", "b", "c", "d", "e", "f")
		batch := s.claimAgain(store, 2)
		s.publish(batch)
		kill()
		s.settleAgain(batch)
		kill()
	}
	for len(s.published) < len(s.committed) {
		batch := s.claimAgain(store, 10)
		s.publish(batch)
		s.settleAgain(batch)
	}
	s.judge("")
}

// claimAgain claims until it is not an error, as a relay does.
func (s *stage) claimAgain(store *Store, n int) outbox.Batch {
	s.Helper()
	for errs := 0; ; errs++ {
		claimed, err := store.Claim(s.Context(), outbox.ClaimRequest{Limit: n})
		if err == nil {
			return claimed
		}
		if errs > 20 {
			s.Fatal(err)
		}
	}
}

// settleAgain settles as delivered until it is not an error, as a relay does.
func (s *stage) settleAgain(batch outbox.Batch) {
	s.Helper()
	defer batch.Abandon()
	for errs := 0; ; errs++ {
		_, err := batch.Settle(s.Context(), slices.Repeat([]outbox.Outcome{delivered}, len(batch.Messages())))
		if err == nil {
			return
		}
		if errs > 20 {
			s.Fatal(err)
		}
	}
}

// TestCrashInAWindow crashes the server in the middle of a window, with a page out, one read
// ahead, and a session that is dead without knowing it.
func TestCrashInAWindow(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Nothing is written unless somebody waits for it.
			server := pgtest.Server(t, map[string]string{"wal_writer_delay": "10s", "synchronous_commit": "on", "autovacuum": "off"})
			s := newStage(t, server.URL("postgres"), Shape{Shards: 2})
			store := s.open(Config{})
			for range 10 {
				s.emit("a", "b", "c")
			}
			s.deliver(s.claim(store, 3))
			out := s.claim(store, 3)
			store.AwaitReadAhead()
			if stored {
				s.emit("d") // its commit waits for all before it
			}
			if err := server.Restart(t.Context(), pgserver.Immediate); err != nil {
				t.Fatal(err)
			}
			s.pool.Reset()
			s.emit("a", "b", "c")
			s.publish(out)
			s.settleAgain(out)
			for s.story()[lost] != nil {
				batch := s.claimAgain(store, 3)
				s.publish(batch)
				s.settleAgain(batch)
			}
			story := s.story()
			if !stored {
				delete(story, repeated) // what was settled is published once more
			}
			if len(story) > 0 {
				t.Errorf("after the crash: %v", story)
			}
		})
	}
}

// TestCallersSettings has a pool that prepares its connections, by a role or a path for example. The store's own ones are
// prepared like it.
func TestCallersSettings(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	config := s.pool.Config()
	var prepared sync.Map
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		prepared.Store(conn.PgConn().PID(), true)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := Open(t.Context(), pool, Stream{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	s.emit("k")
	s.deliver(s.claim(store, 1))
	store.AwaitReadAhead()
	pid := store.reader.conn.Conn().PgConn().PID()
	if _, ok := prepared.Load(pid); !ok {
		t.Errorf("session %d reads the stream without the settings of the caller's pool", pid)
	}
	s.judge("")
}

// TestPayloadsApart has a publisher append to a payload that it was given: that of the next event stays as it is.
func TestPayloadsApart(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.begin().insertInto(nil, "a", []byte("first")).insertInto(nil, "b", []byte("second")).commit()
	batch := s.claim(s.open(Config{}), 2)
	messages := batch.Messages()
	longer := messages[0].Payload
	if longer = append(longer, "aid"...); string(longer) != "firstaid" || string(messages[1].Payload) != "second" {
		t.Errorf("what was appended to one payload made %q of the next one", messages[1].Payload)
	}
	s.deliver(batch)
	s.judge("")
}
