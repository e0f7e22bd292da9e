package pgstore

// Leases that a server's clock, set back, has made too long.

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox/layouts"
)

const (
	// farLimit is how many leases that end too far ahead are watched at once.
	farLimit = 1000
	// unknownLease is how many of its own leases a store waits for a lease of unknown length. No two relays of a table have
	// leases that differ by so much.
	unknownLease = 10
)

// watched is a lease that ends further ahead than one of this store's would. Either it is longer, or the clock was set back
// since it was taken: then it is over when its length has passed, which the database's clock does not show. So this store
// measures the time since it first saw the lease.
type watched struct {
	until time.Time
	since time.Time // by this process's clock, only to measure
}

// farLeases lists rows whose lease ends further ahead than one of this store's that begins now, and how long it is: from
// when the row was last changed. The additional second is for a statement whose time is a little older than its snapshot.
func (c *compiler) farLeases() *statement {
	if c.l.Hold != layouts.HoldLease {
		return nil
	}
	c.begin(0)
	columns := &c.l.Columns
	length := "NULL"
	if !columns.UpdatedAt.IsZero() {
		length = fmt.Sprintf("extract(epoch FROM %s - %s)", t(columns.LockedUntil), t(columns.UpdatedAt))
	}
	return c.end(fmt.Sprintf("SELECT %[1]s, %[2]s, coalesce(%[3]s, 0)::float8\nFROM %[4]s AS t\nWHERE %[5]s AND %[2]s > now() + %[6]s + interval '1 s' AND isfinite(%[2]s) AND %[7]s\nORDER BY %[2]s DESC LIMIT %[8]d",
		t(columns.ID), t(columns.LockedUntil), length, c.l.Events(), c.l.Leased(t), c.lease(), c.mine(), farLimit))
}

// endLeases ends leases, so that the next claim finds them run out: ids $1, each with its end $2, which proves that nobody
// has renewed it. The proof is written so that no index serves it: rows are found by their ids.
func (c *compiler) endLeases() *statement {
	if c.l.Hold != layouts.HoldLease {
		return nil
	}
	c.begin(2)
	columns := &c.l.Columns
	return c.end(fmt.Sprintf("UPDATE %s AS t SET %s = now()\nFROM unnest($1::uuid[], $2::timestamptz[]) AS s(id, until)\nWHERE %s = s.id AND (%s AND %s = s.until) IS TRUE",
		c.l.Events(), quote(columns.LockedUntil.Name), t(columns.ID), c.l.Leased(t), t(columns.LockedUntil)))
}

// endFarLeases ends the leases that this store has watched for their whole length.
func (s *Store) endFarLeases(ctx context.Context) error {
	rows, _ := s.pool.Query(ctx, s.sql.farLeases.sql, s.sql.farLeases.fresh()...)
	now := time.Now()
	far := make(map[[16]byte]watched)
	var ids [][16]byte
	var ends []time.Time
	var id [16]byte
	var until pgtype.Timestamptz
	var length float64
	s.mu.Lock()
	known := s.far
	s.mu.Unlock()
	if _, err := pgx.ForEachRow(rows, []any{&id, &until, &length}, func() error {
		w := watched{until: until.Time, since: now}
		if before, ok := known[id]; ok && before.until.Equal(w.until) {
			w = before
		}
		far[id] = w
		if now.Sub(w.since) >= s.lengthOf(length) {
			ids, ends = append(ids, id), append(ends, w.until)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("outbox: look for leases that end too far ahead: %w", err)
	}
	s.mu.Lock()
	s.far = far
	s.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if _, err := s.pool.Exec(ctx, s.sql.endLeases.sql, s.sql.endLeases.fresh(ids, ends)...); err != nil {
		return fmt.Errorf("outbox: end leases from before the server's clock was set back: %w", err)
	}
	return nil
}

// lengthOf is how long a lease is watched before it is over; seconds is its length, or zero if it is unknown.
func (s *Store) lengthOf(seconds float64) time.Duration {
	if seconds <= 0 {
		return unknownLease * s.config.Lease
	}
	return max(s.config.Lease, time.Duration(seconds*float64(time.Second)))
}
