package pgstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

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
	at := b.store.delivered.now()
	for i, row := range b.rows {
		if outcomes[i].Kind == outbox.Delivered && slices.Contains(ours, row.shard) {
			b.store.delivered.add(delivery{id: b.messages[i].ID, seq: row.seq, at: at, shard: row.shard, parked: true})
		}
	}
	for i, key := range list.keys {
		sh := b.store.shards[list.keyShards[i]]
		if sh == nil || sh.fence != b.fences[sh.number] || !slices.Contains(ours, sh.number) || sh.gated == nil {
			continue
		}
		if _, ok := still[parkedKey{sh.number, key}]; !ok {
			delete(sh.gated, key)
		}
	}
	if len(list.keys) > 0 { // others of the same keys may be due now
		b.store.lookBy(time.Now().Add(b.store.parkedPause()))
	}
	for _, delay := range list.delays {
		if delay != nil {
			b.store.lookIn(*delay)
		}
	}
	b.store.countStopped(&list.parkArrays)
	b.end()
	return lost, nil
}

// parkedKey is a key of a shard.
type parkedKey struct {
	shard int16
	key   string
}

// parkedOutcomes is what is written about parked events.
type parkedOutcomes struct {
	parkArrays
	// keyShards and keys are the keys that may be free now.
	keyShards []int16
	keys      []string
}

func (b *parkedBatch) write(outcomes []outbox.Outcome) *parkedOutcomes {
	list := &parkedOutcomes{}
	for i := range outcomes {
		row, message, outcome := b.rows[i], &b.messages[i], &outcomes[i]
		p := park{gates: row.gates}
		switch {
		case outcome.Kind == outbox.Delivered:
		case outcome.Kind == outbox.Released && outcome.Delay == 0:
			continue // it stays as it is
		default:
			p = parkOf(i, message, outcome, b.store.definition.Load().OnDead)
			p.gates = row.gates && (p.gates || p.state != stateDead)
		}
		list.add(row.shard, row.seq, &p)
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
	numbers := slices.Sorted(maps.Keys(fences))
	fenceList := make([]int64, len(numbers))
	for i, number := range numbers {
		fenceList[i] = fences[number]
	}
	queue := &pgx.Batch{}
	queue.Queue(s.sql.lock, s.config.Subscription, numbers, fenceList)
	queue.Queue(s.sql.settleParked,
		append([]any{s.config.Subscription, [16]byte(s.config.WorkerID), numbers, fenceList}, list.args()...)...)
	queue.Queue(s.sql.promote, s.config.Subscription, list.keyShards, list.keys)
	queue.Queue(s.sql.stillGated, s.config.Subscription, list.keyShards, list.keys)
	results := s.own.SendBatch(ctx, queue)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	rows, _ := results.Query()
	if ours, err = pgx.CollectRows(rows, pgx.RowTo[int16]); err != nil {
		return nil, nil, err
	}
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return nil, nil, err
		}
	}
	rows, _ = results.Query()
	still = make(map[parkedKey]struct{})
	var key parkedKey
	_, err = pgx.ForEachRow(rows, []any{&key.shard, &key.key}, func() error {
		still[key] = struct{}{}
		return nil
	})
	return ours, still, err
}
