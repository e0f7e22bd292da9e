package pgstore

import (
	"context"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlplan"
)

// countStrays counts rows that no state accounts for: nobody claims, settles or purges them.
func (s *Store) countStrays(ctx context.Context) (timeless, unknown int64, err error) {
	if sql := s.sql.timeless; sql != nil {
		if err := s.pool.QueryRow(ctx, sql.sql, sql.fresh()...).Scan(&timeless); err != nil {
			return 0, 0, err
		}
	}
	if sql := s.sql.unknown; sql != nil {
		unknown, err = sqlplan.CountIfCheap(ctx, s.pool, sql.sql, sql.fresh()...)
	}
	return timeless, unknown, err
}

// timeless counts rows that a time decides about and that have none; nil if no time decides.
func (c *compiler) timeless() *statement {
	c.begin(0)
	if rows := c.l.Timeless(c.mine(), outbox.StatsLimit); rows != "" {
		return c.end("SELECT count(*) FROM (\n  " + rows + "\n) AS timeless")
	}
	return nil
}

// unknown counts rows whose status is none that the layout names; nil if there is no status.
func (c *compiler) unknown() *statement {
	c.begin(0)
	if sql := c.l.CountUnknown(c.mine(), outbox.StatsLimit); sql != "" {
		return c.end(sql)
	}
	return nil
}
