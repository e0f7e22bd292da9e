package emit

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// PGXTx is what a pgx.Tx and pgx's pools have in common.
type PGXTx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// PGXConn runs statements through pgx.
type PGXConn struct{ Tx PGXTx }

// Exec runs a statement and reports the rows affected.
func (c PGXConn) Exec(ctx context.Context, sql string, args []any) (int64, error) {
	tag, err := c.Tx.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// Query runs a statement and calls row for each row of the answer.
func (c PGXConn) Query(
	ctx context.Context, sql string, args []any, row func(scan func(dest ...any) error) error,
) error {
	rows, _ := c.Tx.Query(ctx, sql, args...)
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Array leaves most values as they are: pgx encodes slices itself, but finds its way
// through one of UUIDs by reflection.
func (c PGXConn) Array(values any) any {
	if ids, ok := values.([]pgtype.UUID); ok {
		return pgtype.FlatArray[pgtype.UUID](ids)
	}
	return values
}
