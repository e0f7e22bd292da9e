package pgstream

// Which server a stream is on.

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// ErrNoStream means that the stream's tables do not exist.
var ErrNoStream = errors.New("there is no stream; make it with outbox migrate up")

// noteServerSQL remembers which server, and which timeline of it, the stream is on.
const noteServerSQL = `
UPDATE {settings} AS o SET system_identifier = n.system_identifier, timeline = n.timeline
FROM (SELECT system_identifier, ` + streamsql.Timeline + ` AS timeline
  FROM pg_control_system()) AS n,
  (SELECT system_identifier, timeline FROM {settings}) AS old
WHERE (o.system_identifier, o.timeline) IS DISTINCT FROM (n.system_identifier, n.timeline)
RETURNING old.system_identifier IS NOT NULL, n.system_identifier, n.timeline`

// noteServer says when the server is another one than before, as after a promotion.
func (s *Store) noteServer(ctx context.Context, conn Querier) error {
	var known bool
	var system, timeline int64
	err := conn.QueryRow(ctx, s.stream.names(noteServerSQL)).Scan(&known, &system, &timeline)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // the same as before
	}
	if err != nil {
		return fmt.Errorf("outbox: note the server's identity: %w", err)
	}
	if known {
		s.log.Info("the stream is on another server, or was promoted; reading goes on from the stored cursors",
			"system_identifier", system, "timeline", timeline)
	}
	return nil
}
