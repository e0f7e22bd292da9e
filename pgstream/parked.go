package pgstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// followers is how many events of a key come along with its first one.
const followers = 100

// errUsedUp is the last error of an event whose attempts are used up though nobody settled it.
const errUsedUp = "the attempts are used up"

// parkedRow is a parked event that is out.
type parkedRow struct {
	shard int16
	seq   int64
	gates bool
}

// parkedBatch is a batch of parked events. It has the first of a key, or several from the first on.
type parkedBatch struct {
	events
	store  *Store
	fences map[int16]int64
	rows   []parkedRow
}

// holds reports whether the batch has events of a shard.
func (b *parkedBatch) holds(number int16) bool {
	if b == nil {
		return false
	}
	_, ok := b.fences[number]
	return ok
}

// loadGated reads the keys that wait, where they are not known.
func (s *Store) loadGated(ctx context.Context) error {
	s.parking.Lock()
	defer s.parking.Unlock()
	var numbers []int16
	s.mu.Lock()
	for _, sh := range s.sorted() {
		if sh.stale && !sh.out {
			numbers = append(numbers, sh.number)
		}
	}
	s.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	rows, _ := s.own.Query(ctx, s.sql.gated, s.config.Subscription, numbers)
	gated := make(map[int16]map[string]struct{}, len(numbers))
	for _, number := range numbers {
		gated[number] = make(map[string]struct{})
	}
	var number int16
	var key string
	if _, err := pgx.ForEachRow(rows, []any{&number, &key}, func() error {
		gated[number][key] = struct{}{}
		return nil
	}); err != nil {
		return fmt.Errorf("outbox: read the keys that wait: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, keys := range gated {
		if sh := s.shards[number]; sh != nil {
			sh.gated, sh.stale = keys, false
		}
	}
	return nil
}

// expect brings the next look forward to when the parked events are due. This process's clock decides only when to
// look; the database decides what is due.
func (s *Store) expect(page *page, parks []park) {
	for _, p := range parks {
		switch {
		case p.state != stateRetry:
		case p.delay == nil:
			s.lookBy(page.messages[p.index].NotBefore)
		default:
			s.lookIn(*p.delay)
		}
	}
}

// lookBy brings the next look forward.
func (s *Store) lookBy(at time.Time) {
	if at.Before(s.lookAt) {
		s.lookAt = at
	}
}

// lookIn is lookBy, some seconds from now. It ignores a time beyond the next look, which may be too long for a Duration.
func (s *Store) lookIn(seconds float64) {
	if seconds < lookEvery.Seconds() {
		s.lookBy(time.Now().Add(time.Duration(seconds * float64(time.Second))))
	}
}

// mayLook reports whether it is time to look for parked events, and none are out.
func (s *Store) mayLook(now time.Time) bool {
	return s.draining == nil && s.parked == nil && !now.Before(s.lookAt)
}

// parkedPause is the pause between two batches of parked events: none, unless the stream flows.
func (s *Store) parkedPause() time.Duration {
	for _, sh := range s.shards {
		if len(sh.pages) > 0 {
			return parkedEvery
		}
	}
	return 0
}

// look reads parked events that are due, unless some are out.
func (s *Store) look(ctx context.Context, n int, now time.Time) error {
	s.mu.Lock()
	if !s.mayLook(now) {
		s.mu.Unlock()
		return nil
	}
	limit := n
	fences := make(map[int16]int64)
	var numbers []int16
	for _, sh := range s.sorted() {
		if len(sh.pages) > 0 {
			limit = min(limit, parkedStep)
		}
		if !sh.leaving {
			fences[sh.number] = sh.fence
			numbers = append(numbers, sh.number)
		}
	}
	s.lookAt = now.Add(lookEvery) // a settle may bring it forward meanwhile
	s.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	// The next event may be due long before the next look. It is asked for first: one that becomes due in between is
	// read now.
	due, err := s.nextDue(ctx, numbers)
	if err != nil {
		return err
	}
	batch := &parkedBatch{store: s, fences: fences}
	spent := &parkedBatch{store: s, fences: fences}
	if err := s.readParked(ctx, numbers, limit, batch, spent); err != nil {
		return err
	}
	if len(spent.rows) > 0 {
		if err := spent.bury(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exhausted = append(s.exhausted, spent.messages...)
	if len(batch.rows)+len(spent.rows) > 0 {
		s.lookBy(now.Add(s.parkedPause()))
	}
	if due != nil {
		s.lookIn(*due)
	}
	if len(batch.rows) > 0 {
		s.parked = batch
	}
	return nil
}

// nextDue returns the seconds until the next parked event is due; nil if there is none.
func (s *Store) nextDue(ctx context.Context, numbers []int16) (seconds *float64, err error) {
	if err := s.reader.conn.QueryRow(ctx, s.sql.nextDue, s.config.Subscription, numbers).Scan(&seconds); err != nil {
		return nil, fmt.Errorf("outbox: look when the next parked event is due: %w", err)
	}
	return seconds, nil
}

// readParked reads due events into batch, and those whose attempts are used up into spent.
func (s *Store) readParked(ctx context.Context, numbers []int16, limit int, batch, spent *parkedBatch) error {
	rows, _ := s.reader.conn.Query(ctx, s.sql.due, pgx.QueryResultFormats{pgx.BinaryFormatCode},
		s.config.Subscription, numbers, limit, followers)
	defer rows.Close()
	size := 0
	var stopped string // a key behind whose run nothing may be taken
	for rows.Next() {
		values := rows.RawValues()
		row := parkedRow{shard: int16Of(values[0]), seq: int64Of(values[1]), gates: boolOf(values[4])}
		leads, waits, attempts := boolOf(values[2]), boolOf(values[3]), int(int32Of(values[5]))
		message := s.reader.rows.message(values[7:], s.config.MaxAttempts)
		message.Attempt = attempts + 1
		if replayed := values[6]; replayed != nil {
			message.ReplayedAt = timestamp(replayed)
		}
		// The head of a run is due; what follows comes along as long as it only waits for it.
		follows := waits && message.Key != stopped && len(batch.messages) > 0 && batch.messages[len(batch.messages)-1].Key == message.Key
		switch {
		case leads && attempts >= message.MaxAttempts:
			spent.rows, spent.messages = append(spent.rows, row), append(spent.messages, message)
			stopped = message.Key
		case (leads || follows) && len(batch.rows) < limit && size < pageBytes:
			batch.rows, batch.messages = append(batch.rows, row), append(batch.messages, message)
			size += len(message.Payload)
			stopped = ""
		default:
			stopped = message.Key
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("outbox: read parked events: %w", err)
	}
	batch.narrow()
	spent.narrow()
	return nil
}

// narrow forgets the shards that the batch has no event of.
func (b *parkedBatch) narrow() {
	fences := make(map[int16]int64)
	for _, row := range b.rows {
		fences[row.shard] = b.fences[row.shard]
	}
	b.fences = fences
}

// bury settles events whose attempts are used up as dead.
func (b *parkedBatch) bury(ctx context.Context) error {
	died := outbox.Outcome{Kind: outbox.Died, Error: errUsedUp, Reason: outbox.ReasonMaxAttempts, Uncounted: true}
	_, err := b.Settle(ctx, slices.Repeat([]outbox.Outcome{died}, len(b.rows)))
	return err
}

// Renew keeps the shards.
func (b *parkedBatch) Renew(ctx context.Context) error { return b.store.renew(ctx, b.fences) }

// Unblocked reports whether parked events may be due now.
func (b *parkedBatch) Unblocked() bool {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	return !time.Now().Before(b.store.lookAt)
}

// Abandon lets the next batch of parked events out.
func (b *parkedBatch) Abandon() {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.end()
}

// end lets the next batch of parked events out.
func (b *parkedBatch) end() {
	if b.store.draining != b {
		return
	}
	b.store.draining = nil
	if len(b.store.departing()) > 0 {
		b.store.tendAt = time.Time{} // somebody waits for them
	}
}
