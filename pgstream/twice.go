package pgstream

// Two events with one number, which only a sequence that was set back makes. A page that ends between
// them would pass the second over, and both could not be parked: neither is handed out before a repair
// has given one of them another number.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// refuseTwice notes that a number is there twice, and refuses the stream.
func (s Stream) refuseTwice(ctx context.Context, db Querier) error {
	if err := s.doubt(ctx, db, evidenceTwice); err != nil {
		return err
	}
	return fmt.Errorf("outbox: %w (%s)", ErrRestored, evidenceTwice)
}

// isTwice reports whether a settle failed on a number that another event has: parkSQL writes a NULL then,
// or finds both events at once.
func isTwice(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "21000" || // cardinality_violation
		pgErr.Code == "23502" && pgErr.TableName == "outbox_parked" && pgErr.ColumnName == "seq") // not_null_violation
}

// foundTwice refuses the stream after such a settle, and lets the next claim find the refusal, instead of
// publishing the page again until a heartbeat does.
func (s *Store) foundTwice(ctx context.Context) error {
	err := s.stream.refuseTwice(ctx, s.own)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tendAt, s.checkAt = time.Time{}, time.Time{}
	return err
}
