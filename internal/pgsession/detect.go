package pgsession

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// state is what is known of one connection. It is kept with the connection, and goes with it.
type state struct {
	// pooled is whether there is a pooler between.
	pooled bool
	// named is whether the query mode of the connection is one with prepared statements. A user who
	// chose another has a reason, most likely a pooler.
	named        bool
	descriptions map[string]*description
}

// shared reports whether the session behind the connection may be others', too. A pooler in session
// mode looks the same, and is treated the same.
func (s *state) shared() bool { return s.pooled || !s.named }

// stateKey is the state's place in a connection's custom data.
const stateKey = "outbox.pgsession"

// of returns what is known of a connection, after a look at the server behind it.
func of(ctx context.Context, conn *pgx.Conn) (*state, error) {
	data := conn.PgConn().CustomData()
	if known, ok := data[stateKey].(*state); ok {
		return known, nil
	}
	pid, err := backend(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("look for a connection pooler: %w", err)
	}
	found := &state{
		pooled:       pid != conn.PgConn().PID(),
		named:        conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement,
		descriptions: make(map[string]*description),
	}
	data[stateKey] = found
	return found, nil
}

// backend is the process of the server that answers.
func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	// The simple protocol asks nothing of a pooler.
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}

// Pooled reports whether there is a connection pooler between conn and its server. A pooler invents
// the process number that it gives a client, since the client's server session may change.
//
// What mode the pooler is in cannot be seen by one connection; see Shares.
func Pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	known, err := of(ctx, conn)
	if err != nil {
		return false, err
	}
	return known.pooled, nil
}

// notice is what is said, once, of a pooler.
const notice = "there is a connection pooler before the database: statements are not prepared, and settings are made for each transaction"

// Notice says so if there is a pooler between a pool and its server.
func Notice(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		pooled, err := Pooled(ctx, conn.Conn())
		if pooled {
			log.Info(notice)
		}
		return err
	})
}

// shareRounds is how often Shares looks. In transaction mode one round is nearly always enough.
const shareRounds = 10

// Shares reports whether the pooler between conn and its server gives the server session to others
// between two transactions. It opens a second connection to find out, and leaves nothing behind.
func Shares(ctx context.Context, conn *pgx.Conn) (bool, error) {
	pooled, err := Pooled(ctx, conn)
	if err != nil || !pooled {
		return false, err
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return false, fmt.Errorf("look for the pooler's mode: %w", err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }() // there is nothing to lose
	// In session mode both keep their sessions to themselves. Otherwise an idle pooler gives other
	// the session that conn had last, and a busy one gives conn a new one each time.
	first, err := backend(ctx, conn)
	for range shareRounds {
		var mine, others uint32
		if err == nil {
			mine, err = backend(ctx, conn)
		}
		if err == nil {
			others, err = backend(ctx, other)
		}
		if err != nil {
			return false, fmt.Errorf("look for the pooler's mode: %w", err)
		}
		if mine != first || others == mine {
			return true, nil
		}
	}
	return false, nil
}
