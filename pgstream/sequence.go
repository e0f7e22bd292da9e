package pgstream

// A sequence that was set back, also if it has caught up again between two looks at it.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlplan"
)

// mark is what a cursor relies on: transactions from xid on draw only seqs above seq. An event that
// breaks it proves that the sequence was set back. No window is opened over it (passedOver).
type mark struct {
	xid uint64
	seq int64
}

// checkEvery is the shortest time between two checks of a relay that is waiting for shards.
const checkEvery = time.Second

// mark is that of a cursor between two windows; its seq is zero where it has read nothing yet. Transactions
// that ran at s1 are among those that can only have drawn later numbers, where q1 was read before all of
// them; where not, the late part has what they wrote.
func (c *cursor) mark() mark {
	if c.mayBeLate() {
		return mark{nextXid(c.s1), c.q1}
	}
	return mark{firstRunning(c.s1), c.q1}
}

// marks are the xids of the marks of shards as the statement that opens windows takes them: from what has been
// checked on.
func (s *Store) marks(shards []*shard) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	xids := make([]string, len(shards))
	for i, sh := range shards {
		xids[i] = strconv.FormatUint(max(sh.cursor.mark().xid, sh.checked), 10)
	}
	return xids
}

// checkShards looks, in one walk, for an event that breaks a mark of shards that are between two windows.
func (s *Store) checkShards(ctx context.Context, shards []*shard) error {
	var marks []mark
	var checked []*shard
	s.mu.Lock()
	for _, sh := range shards {
		if m := sh.cursor.mark(); sh.known && sh.cursor.s2 == "" && m.seq > 0 {
			marks, checked = append(marks, m), append(checked, sh)
		}
	}
	s.mu.Unlock()
	// Whoever is older than this has ended: the walk sees what they wrote.
	var text string
	if err := s.reader.conn.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text`).Scan(&text); err != nil {
		return fmt.Errorf("outbox: look for the oldest transaction: %w", err)
	}
	if err := s.stream.checkMarks(ctx, s.reader.conn, marks); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range checked {
		sh.checked = parseXid(text)
	}
	return nil
}

// brokenMarksSQL finds the marks that some event breaks. It walks the index by xid once, over all that was
// written since the first of them; the seq is compared there, too, so that no row is read unless it
// matches. $1 xids, $2 the next mark's, $3 seqs.
const brokenMarksSQL = `
SELECT u.xid::text, u.seq
FROM unnest($1::text[]::xid8[], $2::text[]::xid8[], $3::bigint[]) AS u(xid, next, seq)
CROSS JOIN LATERAL (
  SELECT FROM {stream} AS e WHERE e.xid >= u.xid AND e.xid < u.next AND e.seq <= u.seq
  ORDER BY e.xid, e.shard, e.seq LIMIT 1
) AS e`

// marksSQL are the marks of stored cursors. $1 subscription, empty for all.
const marksSQL = `SELECT pg_snapshot_xmax(s1)::text, q1 FROM {shards} WHERE ($1 = '' OR subscription = $1) AND q1 > 0`

// noteMarksSQL notes marks that are broken: outbox repair looks for the events. $1 evidence, $2 xids,
// $3 seqs.
const noteMarksSQL = `
INSERT INTO {doubts} (evidence, xid, seq)
SELECT $1, u.xid::xid8, u.seq FROM unnest($2::text[], $3::bigint[]) AS u(xid, seq)
WHERE NOT EXISTS (SELECT FROM {doubts} AS d WHERE d.xid = u.xid::xid8 AND d.seq = u.seq)`

// ordered sorts marks by their xids, each with the highest seq so far: what one promises holds for the
// later ones, too.
func ordered(marks []mark) []mark {
	list := slices.Clone(marks)
	slices.SortFunc(list, func(a, b mark) int { return cmp.Or(cmp.Compare(a.xid, b.xid), cmp.Compare(b.seq, a.seq)) })
	list = slices.CompactFunc(list, func(a, b mark) bool { return a.xid == b.xid })
	for i := 1; i < len(list); i++ {
		list[i].seq = max(list[i].seq, list[i-1].seq)
	}
	return list
}

// brokenMarks are the marks that some event breaks. The session must read by index.
func (s Stream) brokenMarks(ctx context.Context, db Querier, marks []mark) (broken []mark, err error) {
	list := ordered(marks)
	if len(list) == 0 {
		return nil, nil
	}
	xids, next, seqs := make([]string, len(list)), make([]string, len(list)), make([]int64, len(list))
	for i, m := range list {
		xids[i], seqs[i], next[i] = strconv.FormatUint(m.xid, 10), m.seq, strconv.FormatUint(math.MaxUint64, 10)
		if i > 0 {
			next[i-1] = xids[i]
		}
	}
	rows, _ := db.Query(ctx, s.names(brokenMarksSQL), xids, next, seqs)
	if broken, err = pgx.CollectRows(rows, scanMark); err != nil {
		return nil, fmt.Errorf("outbox: look for events with numbers that were passed: %w", err)
	}
	return broken, nil
}

func scanMark(row pgx.CollectableRow) (m mark, err error) {
	var xid string
	if err := row.Scan(&xid, &m.seq); err != nil {
		return m, err
	}
	m.xid, err = strconv.ParseUint(xid, 10, 64)
	return m, err
}

// checkMarks refuses the stream when an event breaks one of the marks, and notes which.
func (s Stream) checkMarks(ctx context.Context, db Querier, marks []mark) error {
	broken, err := s.brokenMarks(ctx, db, marks)
	if err != nil || len(broken) == 0 {
		return err
	}
	xids, seqs := make([]string, len(broken)), make([]int64, len(broken))
	for i, m := range broken {
		xids[i], seqs[i] = strconv.FormatUint(m.xid, 10), m.seq
	}
	if _, err := db.Exec(ctx, s.names(noteMarksSQL), evidencePassed, xids, seqs); err != nil {
		return fmt.Errorf("outbox: note that the stream needs a repair: %w", err)
	}
	return fmt.Errorf("outbox: %w (%s)", ErrRestored, evidencePassed)
}

// storedMarks are what the stored cursors of a subscription rely on; empty for all subscriptions.
func (s Stream) storedMarks(ctx context.Context, db Querier, subscription string) ([]mark, error) {
	rows, _ := db.Query(ctx, s.names(marksSQL), subscription)
	marks, err := pgx.CollectRows(rows, scanMark)
	if err != nil {
		return nil, fmt.Errorf("outbox: read the cursors: %w", err)
	}
	return marks, nil
}

// checkCursors looks for events that the stored cursors of a subscription, or of all, would pass over.
func (s Stream) checkCursors(ctx context.Context, pool *pgsession.Pool, subscription string) (refused error) {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlplan.ByIndex); err != nil {
			return fmt.Errorf("outbox: prepare to check the cursors: %w", err)
		}
		marks, err := s.storedMarks(ctx, tx, subscription)
		if err != nil {
			return err
		}
		if refused = s.checkMarks(ctx, tx, marks); errors.Is(refused, ErrRestored) {
			return nil // and commit the note
		}
		return refused
	})
	if err != nil {
		return err
	}
	return refused
}

// passes reports whether some cursor would pass an event over. It writes nothing.
func (s Stream) passes(ctx context.Context, tx pgx.Tx) (bool, error) {
	if _, err := tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return false, fmt.Errorf("outbox: prepare to check the cursors: %w", err)
	}
	marks, err := s.storedMarks(ctx, tx, "")
	if err != nil {
		return false, err
	}
	broken, err := s.brokenMarks(ctx, tx, marks)
	return len(broken) > 0, err
}

// checkHistory checks with every heartbeat that the server's history is still the one that the cursors
// are of. It goes over the reader's own session: the marks are of that one's server.
func (s *Store) checkHistory(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	if now.Before(s.checkAt) {
		s.mu.Unlock()
		return nil
	}
	s.checkAt = now.Add(checkEvery)
	list := s.sorted()
	s.mu.Unlock()
	if err := s.checkShards(ctx, list); err != nil {
		return err
	}
	return s.stream.check(ctx, s.reader.conn, s.config.Subscription)
}
