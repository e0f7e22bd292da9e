package pgstream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
)

// Ring is how well retention keeps up with a stream.
type Ring struct {
	// Slots are those that should have been emptied before they were written again.
	Slots []LateSlot
	// Deliveries and Dedupe are the ages of the oldest rows beside the log: what was settled, and
	// the dedupe keys. They are purged by a relay, or a purge, with a retention.
	Deliveries, Dedupe time.Duration
}

// LateSlot is a slot that kept its events for another turn.
type LateSlot struct {
	// Slot is its number.
	Slot int
	// Age is that of its oldest event, and Turn how long the ring takes to come round.
	Age, Turn time.Duration
	// Behind are the subscriptions that have not settled all of it. If there are none, nobody was
	// there to empty it.
	Behind []string
}

// besidesSQL is the age of the oldest rows beside the log; the indexes on the times answer it.
const besidesSQL = `
SELECT coalesce(extract(epoch FROM now() - (SELECT min(settled_at) FROM {deliveries})), 0)::float8,
  coalesce(extract(epoch FROM now() - (SELECT min(created_at) FROM {dedupe})), 0)::float8`

// oldestSQL is the age of the first event of a slot, in the order of xids: near enough to the
// oldest, and found by the index.
const oldestSQL = `
SELECT %[1]d, extract(epoch FROM now() - (SELECT e.created_at FROM {slot} AS e ORDER BY e.xid LIMIT 1))::float8`

// Ring looks for slots that were not emptied in their turn, and for old rows beside the log.
func (s Stream) Ring(ctx context.Context, tx pgx.Tx) (Ring, error) {
	var ring Ring
	var slots int
	var seconds, deliveries, dedupe float64
	_, err := tx.Exec(ctx, sqlplan.ByIndex)
	if err == nil {
		err = tx.QueryRow(ctx, s.names(`SELECT slots, slot_seconds::float8 FROM {settings}`)).Scan(&slots, &seconds)
	}
	if err == nil {
		err = tx.QueryRow(ctx, s.names(besidesSQL)).Scan(&deliveries, &dedupe)
	}
	if err != nil {
		return ring, fmt.Errorf("outbox: read the ring: %w", err)
	}
	ring.Deliveries, ring.Dedupe = fromSeconds(deliveries), fromSeconds(dedupe)
	turn := fromSeconds(float64(slots) * seconds)
	ages, err := s.slotAges(ctx, tx, slots)
	if err != nil {
		return ring, fmt.Errorf("outbox: read the ring: %w", err)
	}
	for slot, age := range ages {
		if age <= turn {
			continue
		}
		rows, err := tx.Query(ctx, strings.ReplaceAll(s.names(unreadSQL), "{slot}", s.slot(slot)))
		if err != nil {
			return ring, fmt.Errorf("outbox: look who needs slot %d: %w", slot, err)
		}
		late := LateSlot{Slot: slot, Age: age, Turn: turn}
		if late.Behind, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return ring, fmt.Errorf("outbox: look who needs slot %d: %w", slot, err)
		}
		ring.Slots = append(ring.Slots, late)
	}
	return ring, nil
}

// slotAges are the ages of the slots' oldest events, by slot; zero for an empty one.
func (s Stream) slotAges(ctx context.Context, tx pgx.Tx, slots int) ([]time.Duration, error) {
	rows, err := tx.Query(ctx, s.slotAgesSQL(slots))
	if err != nil {
		return nil, err
	}
	ages := make([]time.Duration, slots)
	var slot int
	var age *float64
	_, err = pgx.ForEachRow(rows, []any{&slot, &age}, func() error {
		if age != nil {
			ages[slot] = fromSeconds(*age)
		}
		return nil
	})
	return ages, err
}

func (s Stream) slotAgesSQL(slots int) string {
	parts := make([]string, slots)
	for slot := range parts {
		parts[slot] = strings.ReplaceAll(fmt.Sprintf(oldestSQL, slot), "{slot}", s.slot(slot))
	}
	return strings.Join(parts, "\nUNION ALL")
}

// slot is the name of a slot's table, as SQL.
func (s Stream) slot(number int) string { return s.table(fmt.Sprintf("outbox_stream_%d", number)) }
