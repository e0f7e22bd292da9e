package pgstream

// Whether the cursors and events of a stream are of the history that its server has.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// ErrRestored means that the events and cursors of a stream come from another server, or from another point in its history:
// their snapshots and numbers mean nothing here. Errors that wrap it say what was seen.
var ErrRestored = errors.New("the stream was restored from a dump, or its server, sequence or cursors were changed; run outbox repair")

// ErrSequence means that the settings of the stream's sequence are not those that the stream relies on.
var ErrSequence = errors.New("the sequence outbox_stream_seq hands out more than one value at a time; " +
	"put it right with ALTER SEQUENCE outbox_stream_seq CACHE 1 INCREMENT 1 NO CYCLE")

// ErrStandby means that the server is a standby: its cursors move on the primary.
var ErrStandby = errors.New("this server is a standby; the stream is read on the primary")

// ErrHidden means that this role cannot see a part of the stream, and would skip its events.
var ErrHidden = errors.New("a part of the stream cannot be seen from here")

// The evidence that the stream is of another history. A stamp that does not match stays so; the others may disappear when a
// counter has caught up, and are noted.
const (
	evidenceStamps   = "its stamps were not written by this server"
	evidenceRows     = "events have transaction ids that the server has not reached"
	evidenceCursors  = "cursors are ahead of the server's transactions"
	evidenceSequence = "the sequence outbox_stream_seq is behind numbers that it has given out"
	evidenceTwice    = "the sequence outbox_stream_seq was set back: two events have one number"
	evidencePassed   = "the sequence outbox_stream_seq was set back: events have numbers that the cursors had passed before"
)

// checkSQL compares what is stored with the server. A row that can be seen has an xid below the snapshot's xmax, a cursor
// that can be seen was written in the past, and the sequence, which is read later than the snapshot is taken, is past all
// that can be seen. The shards are an array: the planner assumes that a series has a thousand rows, and would compile the
// statement, which takes a thousand times as long as running it.
const checkSQL = `
SELECT pg_is_in_recovery(),
  ARRAY(SELECT t::text FROM unnest(ARRAY[{'stream'}, {'shards'}, {'parked'}, {'history'}, {'doubts'}, {'subscriptions'}, {'settings'}]) AS t WHERE row_security_active(t::oid)),
  (SELECT count(*) FROM pg_inherits WHERE inhparent = {'stream'} AND NOT inhdetachpending) - coalesce((SELECT max(slots) FROM {settings}), 0),
  (SELECT seqcache = 1 AND NOT seqcycle AND seqincrement = 1 FROM pg_sequence WHERE seqrelid = {'stream_seq'}),
  (SELECT count(*) FROM {history}),
  coalesce((SELECT min(a.history::text) FROM ` + streamsql.NativeStamps + `)::uuid, '00000000-0000-0000-0000-000000000000'),
  coalesce((SELECT xid FROM {stream} ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(pg_current_snapshot()), false),
  EXISTS (SELECT FROM {shards} WHERE pg_snapshot_xmax(coalesce(s2, s1)) > pg_snapshot_xmax(pg_current_snapshot())),
  coalesce(greatest(
    (SELECT max(greatest(q1, q2, hi)) FROM {shards}),
    (SELECT max(e.seq) FROM unnest(ARRAY(SELECT generate_series(0, max(shards) - 1) FROM {settings})) AS g(shard)
      CROSS JOIN LATERAL (SELECT e.seq FROM {stream} AS e WHERE e.shard = g.shard ORDER BY e.seq DESC LIMIT 1) AS e)
  ) > coalesce(pg_sequence_last_value({'stream_seq'}), 0), false),
  ARRAY(SELECT evidence FROM {doubts} GROUP BY evidence ORDER BY min(found_at), evidence),
  ARRAY(SELECT DISTINCT c.subscription FROM {shards} AS c
    WHERE c.awaits_repair OR c.history IS DISTINCT FROM (SELECT min(a.history::text)::uuid FROM ` + streamsql.NativeStamps + `) ORDER BY 1),
  ARRAY(SELECT s.name FROM {subscriptions} AS s
    LEFT JOIN (SELECT c.subscription, count(*) AS n FROM {shards} AS c, {settings} AS o WHERE c.shard < o.shards GROUP BY 1) AS c ON c.subscription = s.name
    WHERE s.ready AND coalesce(c.n, 0) < (SELECT max(shards) FROM {settings}) ORDER BY 1)`

// health is what a look at a stream's history has found.
type health struct {
	// standby is set if the server is a standby, and single if the sequence hands out one value at a time, as it must.
	standby, single bool
	// hidden are the tables that row-level security lets this role see only in part, and slots is how many more or fewer
	// slots the log has than it should.
	hidden []string
	slots  int
	// stamped is set if the stamps are this server's; history is their name.
	stamped bool
	history uuid.UUID
	// seen is the evidence that is there now, and noted the evidence that was seen before.
	seen, noted []string
	// strange are the subscriptions whose cursors are of another history, or wait for a repair.
	strange []string
	// partial are the subscriptions that lack cursors.
	partial []string
}

// look reads a stream's health.
func (s Stream) look(ctx context.Context, db Querier) (h health, err error) {
	if err := s.exists(ctx, db, "outbox_stream"); err != nil {
		return h, err
	}
	var stamps int
	var rows, cursors, sequence bool
	err = db.QueryRow(ctx, s.names(checkSQL)).Scan(&h.standby, &h.hidden, &h.slots, &h.single, &stamps, (*[16]byte)(&h.history), &rows, &cursors, &sequence, &h.noted, &h.strange, &h.partial)
	if err != nil {
		return h, fmt.Errorf("outbox: check the stream: %w", err)
	}
	h.stamped = stamps == 2 && h.history != uuid.Nil
	for evidence, is := range map[string]bool{evidenceRows: rows, evidenceCursors: cursors, evidenceSequence: sequence} {
		if is {
			h.seen = append(h.seen, evidence)
		}
	}
	slices.Sort(h.seen)
	return h, nil
}

// refusal is why the stream, or the subscription unless it is empty, cannot be used; nil if it can.
func (h *health) refusal(subscription string) error {
	switch {
	case h.standby:
		return fmt.Errorf("outbox: %w", ErrStandby)
	case len(h.hidden) > 0:
		return fmt.Errorf("outbox: %w: row-level security hides rows of %s from this role; "+
			"run ALTER TABLE … DISABLE ROW LEVEL SECURITY, or give the role BYPASSRLS", ErrHidden, strings.Join(h.hidden, ", "))
	case h.slots < 0:
		return fmt.Errorf("outbox: %w: %d of the log's slots are detached; attach them again, as outbox doctor --check layout says", ErrHidden, -h.slots)
	case !h.stamped:
		return fmt.Errorf("outbox: %w (%s)", ErrRestored, evidenceStamps)
	case len(h.seen) > 0 || len(h.noted) > 0:
		all := append(slices.Clone(h.seen), h.noted...)
		slices.Sort(all)
		return fmt.Errorf("outbox: %w (%s)", ErrRestored, strings.Join(slices.Compact(all), "; "))
	case slices.Contains(h.strange, subscription):
		return fmt.Errorf("outbox: %w (subscription %q has not been repaired)", ErrRestored, subscription)
	case slices.Contains(h.partial, subscription):
		return fmt.Errorf("outbox: %w (subscription %q lacks cursors: some of its shards are read by nobody)", ErrRestored, subscription)
	case !h.single:
		return fmt.Errorf("outbox: %w", ErrSequence)
	}
	return nil
}

// check refuses a server on which the cursors would lose events. It notes the evidence, so that the refusal does not end
// when a counter catches up.
func (s Stream) check(ctx context.Context, db Querier, subscription string) error {
	h, err := s.look(ctx, db)
	if err != nil {
		return err
	}
	if err := s.note(ctx, db, &h); err != nil {
		return err
	}
	return h.refusal(subscription)
}

// Check returns an error, such as ErrNoStream or ErrRestored, if nobody may look at a subscription or change it, because
// its cursors and events may be of two histories.
func (s Stream) Check(ctx context.Context, pool *pgxpool.Pool, subscription string) error {
	return s.check(ctx, pool, subscription)
}

// doubtSQL notes evidence once.
const doubtSQL = `
INSERT INTO {doubts} (evidence) SELECT evidence FROM unnest($1::text[]) AS evidence
WHERE NOT EXISTS (SELECT FROM {doubts} AS d WHERE d.evidence = evidence.evidence)`

// note records new evidence. A session that may only read, on a standby or by its rights, leaves that to others.
func (s Stream) note(ctx context.Context, db Querier, h *health) error {
	fresh := slices.DeleteFunc(slices.Clone(h.seen), func(evidence string) bool { return slices.Contains(h.noted, evidence) })
	if len(fresh) == 0 || h.standby {
		return nil
	}
	return s.doubt(ctx, db, fresh...)
}

// doubt notes evidence.
func (s Stream) doubt(ctx context.Context, db Querier, evidence ...string) error {
	_, err := db.Exec(ctx, s.names(doubtSQL), evidence)
	if state := sqlstate.Of(err); state == sqlstate.InsufficientPrivilege || state == sqlstate.ReadOnlyTransaction {
		return nil
	}
	if err != nil {
		return fmt.Errorf("outbox: note that the stream needs a repair: %w", err)
	}
	return nil
}

// Verify returns an error, such as ErrNoStream or ErrRestored, if the cursors would lose events on this server; Open
// refuses it as well. It writes nothing.
func (s Stream) Verify(ctx context.Context, tx pgx.Tx) error {
	h, err := s.look(ctx, tx)
	if err != nil {
		return err
	}
	if err := h.refusal(""); err != nil {
		return err
	}
	if len(h.strange) > 0 {
		return fmt.Errorf("outbox: %w (not repaired: subscription %s)", ErrRestored, strings.Join(h.strange, ", "))
	}
	if err := h.damage(); err != nil {
		return err
	}
	passes, err := s.passes(ctx, tx)
	if err == nil && passes {
		err = fmt.Errorf("outbox: %w (%s)", ErrRestored, evidencePassed)
	}
	return err
}
