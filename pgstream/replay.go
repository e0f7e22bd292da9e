package pgstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// Replay says which delivered events to publish again, and to whom. At least one of the
// conditions is set; together they narrow each other.
type Replay struct {
	// Subscription is the subscription whose relay publishes them. Default "default".
	Subscription string
	// ID is a single event; IDs are some.
	ID  uuid.UUID
	IDs []uuid.UUID
	// Since and Until bound when the events were emitted: at or after, and before.
	Since, Until time.Time
	// Key, Type, Topic and so on are those of the events.
	Key, Type, Topic, Namespace, AggregateType, AggregateID string
	// TenantID is the events' tenant.
	TenantID uuid.UUID
	// Rate is how many events become due per second; zero for all at once.
	Rate int
	// DryRun counts only.
	DryRun bool
	// Step is called in the transaction of each step, with the events that it parks; an error
	// takes the step back. Nil for nobody.
	Step func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error
	// Progress is told the number so far, after each step; nil for nobody.
	Progress func(done int64)
}

// replayStep is how many events one statement of a replay copies.
const replayStep = 1000

// replayFrom is the part of the stream that a replay can take: what the subscription has
// passed, and is not parked: that is still to be delivered, or dead. In steps, by seq over
// all shards. $1 subscription, $2 last seq, $3 step.
const replayFrom = `
FROM {shards} AS c
CROSS JOIN LATERAL (
  SELECT e.shard, e.seq, {e.event}
  FROM {stream} AS e
  WHERE e.shard = c.shard AND e.seq > $2 AND ` + streamsql.Behind + `%[1]s
    AND NOT EXISTS (SELECT FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = e.shard AND p.seq = e.seq)
  ORDER BY e.seq
  LIMIT $3
) AS e
WHERE c.subscription = $1
ORDER BY e.seq
LIMIT $3`

// replaySQL parks copies that gate nothing. $4 is when the replay began, $5 the seconds from
// one to the next, $6 how many came before. One that is parked meanwhile is left alone.
const replaySQL = `
WITH picked AS MATERIALIZED (SELECT e.*` + replayFrom + `), parked AS (
  INSERT INTO {parked} (subscription, shard, seq, state, gates, replayed, next_attempt_at, {event})
  SELECT $1, e.shard, e.seq, 'retry', false, true,
    $4::timestamptz + make_interval(secs => $5::float8 * ($6::bigint + row_number() OVER (ORDER BY e.seq))), {e.event}
  FROM picked AS e
  ORDER BY e.seq
  ON CONFLICT DO NOTHING
  RETURNING id
)
SELECT coalesce((SELECT array_agg(id) FROM parked), '{}'), (SELECT count(*) FROM picked), coalesce((SELECT max(seq) FROM picked), 0)`

const replayCountSQL = `
SELECT '{}'::uuid[], count(*), coalesce(max(seq), 0)
FROM (SELECT e.seq` + replayFrom + `) AS e
WHERE ($4::timestamptz, $5::float8, $6::bigint) IS NOT NULL`

// Replay publishes delivered events again, with the same ids, in order, at the given rate. It parks copies for the relay;
// the cursors and the log stay as they are. It returns the number of events.
func (s Stream) Replay(ctx context.Context, pool *pgxpool.Pool, replay Replay) (int64, error) {
	replay.Subscription = cmp.Or(replay.Subscription, DefaultSubscription)
	if replay.Rate < 0 {
		return 0, errors.New("outbox: the rate of a replay is negative")
	}
	if err := s.check(ctx, pool, replay.Subscription); err != nil {
		return 0, err
	}
	subscription, err := s.FindSubscription(ctx, pool, replay.Subscription)
	if err != nil {
		return 0, err
	}
	conditions, args, err := replay.conditions(7)
	if err != nil {
		return 0, err
	}
	filter, filterArgs := subscription.Filter.conditions(7 + len(args))
	sql := replaySQL
	if replay.DryRun {
		sql = replayCountSQL
	}
	sql = s.names(fmt.Sprintf(sql, conditions+filter))
	args = append(args, filterArgs...)
	// Without a rate the events are still due one after the other, so that they stay in order.
	gap := time.Microsecond.Seconds()
	if replay.Rate > 0 {
		gap = 1 / float64(replay.Rate)
	}
	var began time.Time
	if err := pool.QueryRow(ctx, `SELECT now()`).Scan(&began); err != nil {
		return 0, fmt.Errorf("outbox: replay: %w", err)
	}
	var total, last int64
	for {
		var parked [][16]byte
		var picked, until int64
		all := append([]any{replay.Subscription, last, replayStep, began, gap, total}, args...)
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, sql, all...).Scan(&parked, &picked, &until); err != nil || len(parked) == 0 || replay.Step == nil {
				return err
			}
			ids := make([]uuid.UUID, len(parked))
			for i, id := range parked {
				ids[i] = id
			}
			return replay.Step(ctx, tx, ids)
		})
		if err != nil {
			return total, fmt.Errorf("outbox: replay: %w", err)
		}
		if replay.DryRun {
			total += picked
		} else {
			total += int64(len(parked))
		}
		if len(parked) > 0 {
			_ = s.wake(ctx, pool, aboutParked) // relays find them by themselves, later
		}
		if replay.Progress != nil {
			replay.Progress(total)
		}
		if picked < replayStep {
			return total, nil
		}
		last = until
	}
}

// conditions are what the replay asks for, as SQL with parameters from $first on.
func (r *Replay) conditions(first int) (sql string, args []any, err error) {
	var b strings.Builder
	add := func(condition string, value any) {
		fmt.Fprintf(&b, " AND e."+condition, first+len(args))
		args = append(args, value)
	}
	if r.ID != uuid.Nil {
		add("id = $%d", [16]byte(r.ID))
	}
	if !r.Since.IsZero() {
		add("created_at >= $%d", r.Since)
	}
	if !r.Until.IsZero() {
		add("created_at < $%d", r.Until)
	}
	if len(r.IDs) > 0 {
		add("id = ANY($%d)", pgsession.IDs(r.IDs))
	}
	if r.TenantID != uuid.Nil {
		add("tenant_id = $%d", [16]byte(r.TenantID))
	}
	for column, value := range map[string]string{
		"key": r.Key, "type": r.Type, "topic": r.Topic, "namespace": r.Namespace,
		"aggregate_type": r.AggregateType, "aggregate_id": r.AggregateID,
	} {
		if value != "" {
			add(column+" = $%d", value)
		}
	}
	if len(args) == 0 {
		return "", nil, errors.New("outbox: say what to replay: an id, a time, a key, a type or a topic")
	}
	return b.String(), args, nil
}
