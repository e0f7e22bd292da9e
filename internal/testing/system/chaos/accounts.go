//go:build unix

package chaos

// The load of the stream: transactions on accounts. Each locks the rows of its accounts before it emits, and gives every
// event the next version of its account. So the versions of a key are the order of its commits, without a gap: what is
// rolled back takes its versions back, too.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	writerCount  = 32
	accountCount = 800
	// maxAccounts, maxVersions and maxLoose are the most accounts of a transaction, events of each, and events without a key.
	maxAccounts, maxVersions, maxLoose = 3, 5, 3
	// maxEarly is the longest time between a transaction's xid and its locks, maxDelay between its events and its commit.
	maxEarly, maxDelay = 50 * time.Millisecond, 2 * time.Second
)

// accounts are what the writers write to.
type accounts struct {
	*ledger
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	// think is the longest pause of a writer before a transaction, lockTimeout how long an emit may wait for a lock; zero
	// for as long as it takes. Slowest is the longest that any emit took.
	think       time.Duration
	lockTimeout atomic.Int64 // milliseconds
	slowest     atomic.Int64
	// How many transactions took their xid early, kept or undid a savepoint, waited before their commit, rolled back.
	early, kept, undone, delayed, rolled atomic.Int64
}

func newAccounts(ctx context.Context, pool *pgxpool.Pool, ledger *ledger, think time.Duration) (*accounts, error) {
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{})
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, fmt.Sprintf(`
		CREATE TABLE IF NOT EXISTS accounts (id integer PRIMARY KEY, version bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
		INSERT INTO accounts (id) SELECT generate_series(1, %d) ON CONFLICT DO NOTHING`, accountCount))
	return &accounts{ledger: ledger, pool: pool, emitter: emitter, think: think}, err
}

// transaction is what a writer does, chosen beforehand.
type transaction struct {
	accounts []int
	versions int           // events of each account
	loose    int           // events without a key
	named    bool          // the writer chooses the ids of its events
	think    time.Duration // before it begins
	early    time.Duration // from its xid to its first lock
	delay    time.Duration // from its last event to its commit
	undone   bool          // its events are emitted once before, and undone by a savepoint
	kept     bool          // some of its events are emitted in a savepoint of their own
	rollback bool
}

func (a *accounts) draw(choose *rand.Rand) (do job, commits int) {
	oneIn := func(n int) bool { return choose.IntN(n) == 0 }
	upTo := func(d time.Duration) time.Duration { return time.Duration(choose.Int64N(int64(d) + 1)) }
	t := &transaction{
		versions: 1 + choose.IntN(maxVersions), loose: choose.IntN(maxLoose + 1),
		named: oneIn(2), undone: oneIn(8), kept: oneIn(8), rollback: oneIn(10), think: upTo(a.think),
	}
	for range 1 + choose.IntN(maxAccounts) {
		t.accounts = append(t.accounts, 1+choose.IntN(accountCount))
	}
	slices.Sort(t.accounts)
	t.accounts = slices.Compact(t.accounts)
	if oneIn(4) {
		t.early = 1 + upTo(maxEarly)
	}
	if oneIn(100) {
		t.delay = 1 + upTo(maxDelay)
		t.accounts = t.accounts[:1] // whoever wants one of its accounts waits
	}
	if !t.rollback {
		commits = len(t.accounts)*t.versions + t.loose
	}
	return func(ctx context.Context) { a.do(ctx, t) }, commits
}

func (a *accounts) do(ctx context.Context, t *transaction) {
	pause(ctx, t.think)
	for {
		ids, err := a.try(ctx, t)
		switch {
		case errors.Is(err, errRollback):
			return
		case err == nil:
			a.commit(ids)
			a.count(t)
			return
		case errors.Is(err, outbox.ErrInvalidEvent) || isRefused(err) || ctx.Err() != nil:
			a.fail(err)
			return
		case len(ids) > 0 && a.happened(ctx, t, ids[0]):
			a.commit(ids)
			a.repeat()
			return
		case t.rollback:
			return // the database failed first: it is not committed in any case
		}
		pause(ctx, producerRetry)
	}
}

// isRefused reports whether the server refused a statement, as one that waited too long for a lock, and did not just go
// away or down (classes 08 and 57). To try again would not help, or hide it.
func isRefused(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && !strings.HasPrefix(refused.Code, "08") && !strings.HasPrefix(refused.Code, "57")
}

// count says what a committed transaction was.
func (a *accounts) count(t *transaction) {
	for _, was := range []struct {
		so bool
		in *atomic.Int64
	}{{t.early > 0, &a.early}, {t.kept, &a.kept}, {t.undone, &a.undone}, {t.delay > 0, &a.delayed}} {
		if was.so {
			was.in.Add(1)
		}
	}
}

// happened reports whether a commit that was answered by an error did happen. A crashing server ends its backends one
// after the other: one that still answers does not see what another has written to the disk and not yet shown. So it
// asks only once it has the transaction's own lock, which nobody gets before the transaction has ended.
func (a *accounts) happened(ctx context.Context, t *transaction, id uuid.UUID) (there bool) {
	for ctx.Err() == nil {
		if a.locked(ctx, t.accounts[0]) == nil &&
			a.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox_stream WHERE id = $1)`, id).Scan(&there) == nil {
			return there
		}
		pause(ctx, producerRetry)
	}
	return false
}

// locked waits for the lock of an account, and gives it back.
func (a *accounts) locked(ctx context.Context, account int) error {
	_, err := a.pool.Exec(ctx, `SELECT FROM accounts WHERE id = $1 FOR UPDATE`, account)
	return err
}

// try makes the transaction. With an error at its commit it returns the ids, too.
func (a *accounts) try(ctx context.Context, t *transaction) (ids []uuid.UUID, err error) {
	tx, err := a.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	if t.early > 0 {
		if _, err := tx.Exec(ctx, `SELECT pg_current_xact_id()`); err != nil {
			return nil, err
		}
		pause(ctx, t.early)
	}
	versions, err := lockAccounts(ctx, tx, t.accounts, t.versions)
	if err != nil {
		return nil, err
	}
	if timeout := a.lockTimeout.Load(); timeout > 0 {
		if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d`, timeout)); err != nil {
			return nil, err
		}
	}
	if t.undone {
		if err := a.undo(ctx, tx, t.events(versions)); err != nil {
			return nil, err
		}
	}
	if ids, err = a.emit(ctx, tx, t.events(versions), t.kept); err != nil {
		return nil, err
	}
	pause(ctx, t.delay)
	if t.rollback {
		a.rollBack(len(ids))
		a.rolled.Add(1)
		return nil, errRollback
	}
	return ids, tx.Commit(ctx)
}

// lockAccounts locks the rows of accounts, in the order of their ids, and returns the versions they had.
func lockAccounts(ctx context.Context, tx pgx.Tx, accounts []int, versions int) (map[int]int64, error) {
	rows, err := tx.Query(ctx, `SELECT id, version FROM accounts WHERE id = ANY($1) ORDER BY id FOR UPDATE`, accounts)
	if err != nil {
		return nil, err
	}
	had := make(map[int]int64, len(accounts))
	var id int
	var version int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &version}, func() error {
		had[id] = version
		return nil
	}); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `UPDATE accounts SET version = version + $2 WHERE id = ANY($1)`, accounts, versions)
	return had, err
}

// events are the next versions of the accounts, and some events without a key.
func (t *transaction) events(had map[int]int64) (events []outbox.Event) {
	add := func(key string, version int64) {
		event := outbox.Event{
			Topic: "accounts", Type: "account_changed", Key: key, Payload: fmt.Appendf(nil, `{"version":%d}`, version),
		}
		if t.named {
			event.ID = uuid.New()
		}
		events = append(events, event)
	}
	for _, account := range t.accounts {
		for i := range t.versions {
			add("account-"+strconv.Itoa(account), had[account]+int64(i)+1)
		}
	}
	for range t.loose {
		add("", 0)
	}
	return events
}

// emit emits events, the later half in a savepoint of its own if so chosen.
func (a *accounts) emit(ctx context.Context, tx pgx.Tx, events []outbox.Event, savepoint bool) ([]uuid.UUID, error) {
	if !savepoint {
		return a.emitAll(ctx, tx, events)
	}
	half := len(events) / 2
	ids, err := a.emitAll(ctx, tx, events[:half])
	if err != nil {
		return nil, err
	}
	nested, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rest, err := a.emitAll(ctx, nested, events[half:])
	if err != nil {
		return nil, err
	}
	return append(ids, rest...), nested.Commit(ctx)
}

// undo emits events and takes them back with a savepoint.
func (a *accounts) undo(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
	nested, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	ids, err := a.emitAll(ctx, nested, events)
	if err != nil {
		return err
	}
	a.rollBack(len(ids))
	return nested.Rollback(ctx)
}

func (a *accounts) emitAll(ctx context.Context, tx pgx.Tx, events []outbox.Event) ([]uuid.UUID, error) {
	if len(events) == 0 {
		return nil, nil
	}
	begun := time.Now()
	emitted, err := a.emitter.EmitMany(ctx, tx, events)
	for took := int64(time.Since(begun)); ; {
		if most := a.slowest.Load(); took <= most || a.slowest.CompareAndSwap(most, took) {
			break
		}
	}
	ids := make([]uuid.UUID, len(emitted))
	for i := range emitted {
		ids[i] = emitted[i].ID
	}
	return ids, err
}
