package pgsession

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// description is what the server said of a statement's parameters and columns.
type description = pgconn.StatementDescription

// maxDescriptions bounds what is kept for a connection; there are far fewer statements.
const maxDescriptions = 512

// statement is one of a round trip.
type statement struct {
	sql     string
	args    []any
	formats []int16 // of the result; nil for those that pgx prefers
}

// parse takes the options of pgx out of a statement's arguments. Which protocol is used is not
// the statement's choice here.
func parse(sql string, args []any) statement {
	s := statement{sql: sql}
	for len(args) > 0 {
		switch option := args[0].(type) {
		case pgx.QueryResultFormats:
			s.formats = option
		case pgx.QueryExecMode:
		default:
			s.args = args
			return s
		}
		args = args[1:]
	}
	return s
}

// IDs are ids in the form that pgx sends without a detour through text.
func IDs(ids []uuid.UUID) [][16]byte {
	plain := make([][16]byte, len(ids))
	for i, id := range ids {
		plain[i] = id
	}
	return plain
}

func parseBatch(queue *pgx.Batch) []statement {
	list := make([]statement, len(queue.QueuedQueries))
	for i, q := range queue.QueuedQueries {
		list[i] = parse(q.SQL, q.Arguments)
	}
	return list
}

// describe asks the server for the parameters of a statement, once for each connection. The
// statement that is executed is sent whole again: it may meet another server session.
func (s *state) describe(ctx context.Context, conn *pgx.Conn, sql string) (*description, error) {
	if known := s.descriptions[sql]; known != nil {
		return known, nil
	}
	found, err := conn.PgConn().Prepare(ctx, "", sql, nil)
	if err != nil {
		return nil, err
	}
	if len(s.descriptions) >= maxDescriptions {
		clear(s.descriptions)
	}
	s.descriptions[sql] = found
	return found, nil
}

// send sends statements in one round trip, without named prepared statements, which a pooler would
// leave in a session that others use. Without a BEGIN among them they are one transaction, too.
//
// The results of before and after are not the caller's: these are statements without parameters.
func send(ctx context.Context, conn *pgx.Conn, before []string, list []statement, after []string) (*results, error) {
	known, err := of(ctx, conn)
	if err != nil {
		return nil, err
	}
	descriptions, builds := make([]*description, len(list)), make([]pgx.ExtendedQueryBuilder, len(list))
	for i, s := range list {
		if descriptions[i], err = known.describe(ctx, conn, s.sql); err != nil {
			return nil, err
		}
		if err = builds[i].Build(conn.TypeMap(), descriptions[i], s.args); err != nil {
			return nil, err
		}
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, sql := range before {
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	}
	for i, s := range list {
		formats := s.formats
		if formats == nil {
			formats = builds[i].ResultFormats
		}
		pipeline.SendQueryParams(s.sql, builds[i].ParamValues, descriptions[i].ParamOIDs, builds[i].ParamFormats, formats)
	}
	for _, sql := range after {
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	}
	r := &results{conn: conn, state: known, pipeline: pipeline, left: len(list), after: len(after)}
	err = pipeline.Sync()
	for range before {
		if err == nil {
			_, err = r.skip()
		}
	}
	if err != nil {
		r.err = err
		return nil, r.Close()
	}
	return r, nil
}

// results are the answers to what was sent. They are pgx.BatchResults.
type results struct {
	conn     *pgx.Conn
	state    *state
	pipeline *pgconn.Pipeline
	rows     pgx.Rows // of the last Query
	left     int      // statements whose answer was not asked for yet
	after    int      // statements after those
	err      error
	closed   bool
}

var errNoMoreResults = errors.New("no more results in batch")

// next is the answer to the next statement.
func (r *results) next() (*pgconn.ResultReader, error) {
	if r.rows != nil {
		r.rows.Close()
		if r.err == nil {
			r.err = r.rows.Err()
		}
		r.rows = nil
	}
	if r.err != nil {
		return nil, r.err
	}
	var reader *pgconn.ResultReader
	var got any
	if got, r.err = r.pipeline.GetResults(); r.err == nil {
		var ok bool
		if reader, ok = got.(*pgconn.ResultReader); !ok {
			r.err = fmt.Errorf("unexpected answer: %T", got)
		}
	}
	return reader, r.err
}

// skip reads over the answer to the next statement.
func (r *results) skip() (tag pgconn.CommandTag, err error) {
	reader, err := r.next()
	if err != nil {
		return tag, err
	}
	tag, r.err = reader.Close()
	return tag, r.err
}

func (r *results) take() error {
	switch {
	case r.err != nil:
		return r.err
	case r.closed || r.left == 0:
		return errNoMoreResults
	}
	r.left--
	return nil
}

// Tx is nil: what is sent here begins no transaction for the caller.
func (r *results) Tx() pgx.Tx { return nil }

// Exec reads the answer to the next statement.
func (r *results) Exec() (tag pgconn.CommandTag, err error) {
	if err := r.take(); err != nil {
		return tag, err
	}
	return r.skip()
}

// Query reads the rows of the next statement.
func (r *results) Query() (pgx.Rows, error) {
	if err := r.take(); err != nil {
		return failedRows{err}, err
	}
	reader, err := r.next()
	if err != nil {
		return failedRows{err}, err
	}
	r.rows = pgx.RowsFromResultReader(r.conn.TypeMap(), reader)
	return r.rows, nil
}

// QueryRow reads the first row of the next statement.
func (r *results) QueryRow() pgx.Row {
	rows, _ := r.Query() // the row says it
	return row{rows}
}

// rollBackTimeout bounds the end of a transaction that has failed.
const rollBackTimeout = 5 * time.Second

// Close reads what is left, up to the end of the transaction: only then it is known to be
// committed.
func (r *results) Close() error {
	if r.closed {
		return r.err
	}
	r.closed = true
	for range r.left + r.after {
		_, _ = r.skip() // r.err says it, and ends it
	}
	if r.rows != nil {
		r.rows.Close()
	}
	if err := r.pipeline.Close(); r.err == nil {
		r.err = err
	}
	if r.err != nil {
		clear(r.state.descriptions) // they may be those of a schema that has changed
	}
	return r.err
}

// end rolls a failed transaction back, so that the pooler can use its session again.
func end(conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollBackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // an error closes the connection, and the transaction with it
}
