package pgsession

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// unnamedTx is a transaction that prepares nothing.
type unnamedTx struct{ pgx.Tx }

// unnamed is the query mode in which pgx gives statements no name and still knows their parameters.
const unnamed = pgx.QueryExecModeCacheDescribe

func (tx unnamedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return tx.Tx.Query(ctx, sql, append([]any{unnamed}, args...)...)
}

func (tx unnamedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return tx.Tx.QueryRow(ctx, sql, append([]any{unnamed}, args...)...)
}

func (tx unnamedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return tx.Tx.Exec(ctx, sql, append([]any{unnamed}, args...)...)
}

func (tx unnamedTx) SendBatch(ctx context.Context, queue *pgx.Batch) pgx.BatchResults {
	sent, err := send(ctx, tx.Conn(), nil, parseBatch(queue), nil)
	if err != nil {
		return failedResults{err}
	}
	return sent
}

// lentTx gives its connection back in the end.
type lentTx struct {
	pgx.Tx
	release func()
}

func (tx *lentTx) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(ctx)
	tx.done()
	return err
}

func (tx *lentTx) Rollback(ctx context.Context) error {
	err := tx.Tx.Rollback(ctx)
	tx.done()
	return err
}

func (tx *lentTx) done() {
	if tx.release != nil {
		tx.release()
		tx.release = nil
	}
}

// lentResults end what they belong to when they are closed.
type lentResults struct {
	pgx.BatchResults
	finish func()
}

func (r *lentResults) Close() error {
	err := r.BatchResults.Close()
	if r.finish != nil {
		r.finish()
		r.finish = nil
	}
	return err
}

// failedResults are those of statements that could not be sent.
type failedResults struct{ err error }

func (r failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, r.err }
func (r failedResults) Query() (pgx.Rows, error)         { return failedRows(r), r.err }
func (r failedResults) QueryRow() pgx.Row                { return row{failedRows(r)} }
func (r failedResults) Close() error                     { return r.err }
func (r failedResults) Tx() pgx.Tx                       { return nil }
