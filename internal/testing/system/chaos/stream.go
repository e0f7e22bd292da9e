//go:build unix

package chaos

// The stream: what is unread, which relay has which shard, and how the tables must end.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/pgstream"
)

// stream asks questions about the stream's tables.
type stream struct {
	pool  *pgxpool.Pool
	think time.Duration // the longest pause of a writer
}

func (s *stream) load(ctx context.Context, ledger *ledger) (load, int, error) {
	accounts, err := newAccounts(ctx, s.pool, ledger, s.think)
	return accounts, writerCount, err
}

func (s *stream) inbox(t *testing.T, _ string) inbox {
	t.Helper()
	return newMailbox(t)
}

func (s *stream) undelivered(ctx context.Context) (int, error) {
	lag, err := pgstream.Stream{}.Lag(ctx, s.pool, pgstream.DefaultSubscription)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, shard := range lag.Shards {
		n += shard.Events
	}
	for _, parked := range lag.Parked {
		n += parked
	}
	return int(n), nil
}

// undone is what a relay settles in three times the wal_writer_delay of the server: it does not wait for the disk.
func (s *stream) undone() int { return 4 * batchSize }

func (s *stream) held(ctx context.Context) (int, error) {
	return s.count(ctx, `SELECT count(*) FROM outbox_shards WHERE owner IS NOT NULL`)
}

func (s *stream) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

func (s *stream) problems(ctx context.Context, committed map[uuid.UUID]time.Time, _ bool) (problems []string, err error) {
	if err := s.leases(ctx); err != nil {
		return nil, err
	}
	for _, check := range []struct{ what, sql string }{
		{"shards are still held", `SELECT count(*) FROM outbox_shards WHERE owner IS NOT NULL AND locked_until > now()`},
		{"events are parked, and none was refused", `SELECT count(*) FROM outbox_parked`},
		{"relays are listed that have ended well", `SELECT count(*) FROM outbox_relays WHERE alive_until > now()`},
	} {
		n, err := s.count(ctx, check.sql)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			problems = append(problems, fmt.Sprintf("%d %s", n, check.what))
		}
	}
	n, err := s.undelivered(ctx)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		problems = append(problems, fmt.Sprintf("%d events are not delivered", n))
	}
	missing, surplus, err := compare(ctx, s.pool, `SELECT id FROM outbox_stream`, committed)
	if missing+surplus > 0 {
		problems = append(problems, fmt.Sprintf("the stream lacks %d committed events and has %d others", missing, surplus))
	}
	return problems, err
}

// leases waits until the leases of killed relays have ended, which may be after the last event was
// delivered. Whatever is held for longer is a problem.
func (s *stream) leases(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		n, err := s.count(ctx, `SELECT count(*) FROM outbox_shards WHERE owner IS NOT NULL AND locked_until > now()`)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// holding is a shard that a relay has, as long as its fence is the same.
type holding struct {
	shard int16
	fence int64
}

// holdings are the shards of a relay process.
func (s *stream) holdings(ctx context.Context, pid int) ([]holding, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT c.shard, c.fence FROM outbox_shards AS c JOIN outbox_relays AS r ON r.subscription = c.subscription AND r.worker = c.owner
		WHERE c.subscription = 'default' AND r.pid = $1`, pid)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h holding, err error) { return h, row.Scan(&h.shard, &h.fence) })
}

// taken is how many of some shards somebody else has by now.
func (s *stream) taken(ctx context.Context, held []holding) (n int, err error) {
	for _, h := range held {
		others, err := s.count(ctx, `
			SELECT count(*) FROM outbox_shards
			WHERE subscription = 'default' AND shard = $1 AND fence <> $2 AND owner IS NOT NULL`, h.shard, h.fence)
		if err != nil {
			return 0, err
		}
		n += others
	}
	return n, nil
}

// latePages is how many pages were settled of transactions that had run for longer than a window.
func (s *stream) latePages(ctx context.Context) (int, error) {
	return s.count(ctx, `SELECT count(*) FROM outbox_deliveries WHERE part = 'late'`)
}
