package pgstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
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

// parkedBatch is a batch of parked events. Of a key it has the first, or a run from the
// first on.
type parkedBatch struct {
	store    *Store
	fences   map[int16]int64
	rows     []parkedRow
	messages []outbox.Message
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
	rows, err := s.own.Query(ctx, s.sql.gated, s.config.Subscription, numbers)
	if err != nil {
		return fmt.Errorf("outbox: read the keys that wait: %w", err)
	}
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

// expect sees to it that parked events are looked for when they are due. This process's clock
// only says when to look; whether they are due is the database's to say.
func (s *Store) expect(page *page, parks []park) {
	for _, p := range parks {
		switch {
		case p.state != stateRetry:
		case p.delay == nil:
			s.lookBy(page.messages[p.index].NotBefore)
		default:
			s.lookBy(time.Now().Add(time.Duration(*p.delay * float64(time.Second))))
		}
	}
}

// lookBy brings the next look forward.
func (s *Store) lookBy(at time.Time) {
	if at.Before(s.lookAt) {
		s.lookAt = at
	}
}

// mayLook reports whether it is time to look for parked events, and none are out.
func (s *Store) mayLook(now time.Time) bool {
	return s.draining == nil && s.parked == nil && !now.Before(s.lookAt)
}

// parkedPause is the time from one batch of parked events to the next: none, unless the
// stream flows.
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
	if len(batch.rows) > 0 {
		s.parked = batch
	}
	return nil
}

// readParked reads due events into batch, and those whose attempts are used up into spent.
func (s *Store) readParked(ctx context.Context, numbers []int16, limit int, batch, spent *parkedBatch) error {
	rows, err := s.reader.conn.Query(ctx, s.sql.due, pgx.QueryResultFormats{pgx.BinaryFormatCode},
		s.config.Subscription, numbers, limit, followers)
	if err != nil {
		return fmt.Errorf("outbox: read parked events: %w", err)
	}
	defer rows.Close()
	size := 0
	var stopped string // a key behind whose run nothing may be taken
	for rows.Next() {
		values := rows.RawValues()
		row := parkedRow{shard: int16Of(values[0]), seq: int64Of(values[1]), gates: boolOf(values[4])}
		leads, waits, attempts := boolOf(values[2]), boolOf(values[3]), int(int32Of(values[5]))
		message, err := s.reader.rows.message(values[6:], s.config.MaxAttempts)
		if err != nil {
			return err
		}
		message.Attempt = attempts + 1
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
	outcomes := make([]outbox.Outcome, len(b.rows))
	for i := range outcomes {
		outcomes[i] = outbox.Outcome{Kind: outbox.Died, Error: errUsedUp, Reason: outbox.ReasonMaxAttempts, Uncounted: true}
	}
	_, err := b.Settle(ctx, outcomes)
	return err
}

// Messages are the events to publish.
func (b *parkedBatch) Messages() []outbox.Message { return b.messages }

// Exhausted is empty: the claim reports them.
func (b *parkedBatch) Exhausted() []outbox.Message { return nil }

// Reclaimed is not known.
func (b *parkedBatch) Reclaimed() int { return 0 }

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

// Settle writes what became of the events: delivered ones are removed, and what waits behind
// them is due.
func (b *parkedBatch) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []uuid.UUID, err error) {
	if len(outcomes) != len(b.messages) {
		return nil, fmt.Errorf("outbox: %d outcomes for %d messages", len(outcomes), len(b.messages))
	}
	list := b.write(outcomes)
	b.store.parking.Lock()
	defer b.store.parking.Unlock()
	ours, still, err := b.store.settleParked(ctx, b.fences, list)
	if err != nil {
		return nil, fmt.Errorf("outbox: settle %d parked events: %w", len(b.rows), err)
	}
	for i, row := range b.rows {
		if !slices.Contains(ours, row.shard) {
			lost = append(lost, b.messages[i].ID)
		}
	}
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for i, key := range list.keys {
		sh := b.store.shards[list.keyShards[i]]
		if sh == nil || sh.fence != b.fences[sh.number] || !slices.Contains(ours, sh.number) || sh.gated == nil {
			continue
		}
		if _, ok := still[parkedKey{sh.number, key}]; !ok {
			delete(sh.gated, key)
		}
	}
	now := time.Now()
	if len(list.keys) > 0 { // others of the same keys may be due now
		b.store.lookBy(now.Add(b.store.parkedPause()))
	}
	for _, delay := range list.delays {
		if delay != nil {
			b.store.lookBy(now.Add(time.Duration(*delay * float64(time.Second))))
		}
	}
	b.end()
	return lost, nil
}

// parkedKey is a key of a shard.
type parkedKey struct {
	shard int16
	key   string
}

// parkedOutcomes are outcomes of parked events as arrays.
type parkedOutcomes struct {
	shards          []int16
	seqs            []int64
	states          []string
	gates           []bool
	attempts        []int32
	delays          []*float64
	errors, reasons []*string
	// keyShards and keys are the keys that may be free now.
	keyShards []int16
	keys      []string
}

func (b *parkedBatch) write(outcomes []outbox.Outcome) *parkedOutcomes {
	list := &parkedOutcomes{}
	for i := range outcomes {
		row, message, outcome := b.rows[i], &b.messages[i], &outcomes[i]
		p := park{gates: row.gates}
		switch outcome.Kind {
		case outbox.Delivered:
		case outbox.Failed:
			p = failed(i, message.Key, message.Attempt, outcome)
			p.gates = row.gates
		case outbox.Died:
			p = died(i, message.Key, message.Attempt, outcome, b.store.subscription.OnDead)
			p.gates = p.gates && row.gates
		default:
			continue // it stays as it is
		}
		list.shards, list.seqs = append(list.shards, row.shard), append(list.seqs, row.seq)
		list.states, list.gates = append(list.states, p.state), append(list.gates, p.gates)
		list.attempts, list.delays = append(list.attempts, int32(p.attempts)), append(list.delays, p.delay)
		list.errors, list.reasons = append(list.errors, p.err), append(list.reasons, p.reason)
		if row.gates && (len(list.keys) == 0 || list.keys[len(list.keys)-1] != message.Key) {
			list.keyShards, list.keys = append(list.keyShards, row.shard), append(list.keys, message.Key)
		}
	}
	return list
}

// settleParked writes outcomes in one transaction, under the lock of the shards' rows. It
// returns the shards that were ours, and which of the keys still wait.
func (s *Store) settleParked(
	ctx context.Context, fences map[int16]int64, list *parkedOutcomes,
) (ours []int16, still map[parkedKey]struct{}, err error) {
	numbers := make([]int16, 0, len(fences))
	for number := range fences {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	fenceList := make([]int64, len(numbers))
	for i, number := range numbers {
		fenceList[i] = fences[number]
	}
	queue := &pgx.Batch{}
	queue.Queue(s.sql.lock, s.config.Subscription, numbers, fenceList)
	queue.Queue(s.sql.settleParked, s.config.Subscription, [16]byte(s.config.WorkerID), numbers, fenceList,
		list.shards, list.seqs, list.states, list.gates, list.attempts, list.delays, list.errors, list.reasons)
	queue.Queue(s.sql.promote, s.config.Subscription, list.keyShards, list.keys)
	queue.Queue(s.sql.stillGated, s.config.Subscription, list.keyShards, list.keys)
	results := s.own.SendBatch(ctx, queue)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	rows, err := results.Query()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = pgx.CollectRows(rows, pgx.RowTo[int16]); err != nil {
		return nil, nil, err
	}
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return nil, nil, err
		}
	}
	if rows, err = results.Query(); err != nil {
		return nil, nil, err
	}
	still = make(map[parkedKey]struct{})
	var key parkedKey
	_, err = pgx.ForEachRow(rows, []any{&key.shard, &key.key}, func() error {
		still[key] = struct{}{}
		return nil
	})
	return ours, still, err
}
