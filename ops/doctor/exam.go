package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits of one check. They are settings of its transaction, not of the session, which behind a pooler somebody
// else uses next.
const (
	limitsSQL = `SELECT set_config('lock_timeout', '1s', true), set_config('statement_timeout', '5s', true),
  set_config('idle_in_transaction_session_timeout', '30s', true)`
	// checkTimeout is for a server that does not answer at all.
	checkTimeout = 30 * time.Second
)

// exam is one examination under way.
type exam struct {
	pool    *pgxpool.Pool
	patient patient
	config  Config

	// check is the running check, in tx.
	check Check
	tx    pgx.Tx

	// unfit is set if the tables do not exist or are not what they should be.
	unfit    bool
	findings []Finding
}

// add adds a finding of the running check.
func (e *exam) add(severity Severity, seen, do string) {
	e.findings = append(e.findings, Finding{Check: e.check.Name, Severity: severity, Seen: seen, Do: do})
}

// run runs one check in a transaction of its own. It fails only if the database cannot be
// reached.
func (e *exam) run(ctx context.Context, c Check) error {
	e.check = c
	if c.reads && e.unfit {
		e.add(Note, "not looked at: the tables are not what the layout says", "")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	before := len(e.findings)
	var well string
	var problem error
	err := pgx.BeginTxFunc(ctx, e.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, limitsSQL); err != nil {
			return err
		}
		e.tx = tx
		well, problem = c.look(ctx, e)
		return errDone // there is nothing to commit
	})
	if !errors.Is(err, errDone) {
		return err
	}
	if problem == nil && len(e.findings) == before {
		e.add(OK, well, "")
	}
	return e.excuse(problem)
}

// errDone ends the transaction of a check.
var errDone = errors.New("the check is done")

// excuse turns an error that stopped a check into a finding.
func (e *exam) excuse(problem error) error {
	var pgErr *pgconn.PgError
	if problem == nil || !errors.As(problem, &pgErr) {
		return problem
	}
	switch pgErr.Code {
	case "42501": // insufficient_privilege
		e.add(Note, "could not look: "+pgErr.Message, "See the check privileges.")
	case "55P03": // lock_not_available
		e.add(Note, "could not look: a table has been locked for more than a second", "See the check locks.")
	case "57014": // query_canceled
		e.add(Note, "could not look: the question took more than five seconds", "Ask again when the server is less busy.")
	default:
		e.add(Note, "could not look: "+pgErr.Message, "")
	}
	return nil
}
