package pgstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// pageBatch is a batch of pages, each of another shard.
type pageBatch struct {
	events
	store *Store
	parts []*part
}

// part is one page that is out, and the cursor it was read at.
type part struct {
	shard  *shard
	fence  int64
	cursor cursor
	page   *page
	// held says, for each event of the page, that it is not published now; nil if all are.
	held []bool
	// count is how many are published; the first is messages[start] of the batch.
	count, start int
	// verdict is what the last settle wrote, or tried to write.
	verdict verdict
	settled bool
}

// part prepares the first page of a shard to be handed out. It holds back events whose key has a parked event, and
// events whose time has not come.
func (sh *shard) part() *part {
	p := &part{shard: sh, fence: sh.fence, cursor: sh.cursor, page: sh.pages[0]}
	p.count = len(p.page.places)
	if len(sh.gated) == 0 && !p.page.delayed {
		return p
	}
	for i := range p.page.places {
		if !p.page.places[i].delayed {
			key := p.page.messages[i].Key
			if _, gated := sh.gated[key]; !gated || key == "" {
				continue
			}
		}
		if p.held == nil {
			p.held = make([]bool, len(p.page.places))
		}
		p.held[i] = true
		p.count--
	}
	return p
}

// add makes a part a piece of the batch.
func (b *pageBatch) add(p *part) {
	p.start = len(b.messages)
	b.parts = append(b.parts, p)
	if p.held == nil && p.start == 0 {
		b.messages = slices.Clip(p.page.messages)
		return
	}
	for i := range p.page.messages {
		if p.held == nil || !p.held[i] {
			b.messages = append(b.messages, p.page.messages[i])
		}
	}
}

// Renew keeps the shards.
func (b *pageBatch) Renew(ctx context.Context) error {
	shards := make(map[int16]int64, len(b.parts))
	for _, p := range b.parts {
		shards[p.shard.number] = p.fence
	}
	return b.store.renew(ctx, shards)
}

// Settle moves the cursors over what was delivered, and parks what was not, in one transaction.
func (b *pageBatch) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []uuid.UUID, err error) {
	if len(outcomes) != len(b.messages) {
		return nil, fmt.Errorf("outbox: %d outcomes for %d messages", len(outcomes), len(b.messages))
	}
	if len(b.parts) == 0 {
		return nil, nil
	}
	var parks parkList
	room := b.store.stopRoom()
	for _, p := range b.parts {
		p.verdict = p.judge(outcomes[p.start:p.start+p.count], b.store.definition.Load().OnDead, room)
		parks.addPage(p.shard.number, p.page, p.verdict.parks)
	}
	if len(parks.shards) > 0 {
		// Nobody may settle parked events between the statement and what is known of its keys.
		b.store.parking.Lock()
		defer b.store.parking.Unlock()
	}
	moved, err := b.store.move(ctx, b.parts, &parks)
	if isTwice(err) {
		err = b.store.foundTwice(ctx)
	}
	if err != nil {
		b.store.own.Distrust(err)
		b.store.mu.Lock()
		for _, p := range b.parts {
			b.store.delivered.addPage(p, outcomes[p.start:p.start+p.count])
		}
		b.store.mu.Unlock()
		return nil, fmt.Errorf("outbox: settle %d pages of the stream: %w", len(b.parts), err)
	}
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for _, p := range b.parts {
		changes, ok := moved[p.shard.number]
		if !ok {
			for j := range p.count {
				lost = append(lost, b.messages[p.start+j].ID)
			}
			p.lose()
			continue
		}
		b.store.delivered.addPage(p, outcomes[p.start:p.start+p.count])
		b.store.expect(p.page, p.verdict.parks)
		p.finish(changes)
		p.shard.behind = p.verdict.behind
		if p.shard.leaving {
			b.store.tendAt = time.Time{} // somebody waits for it
		}
	}
	b.store.countStopped(&parks.parkArrays)
	return lost, nil
}

// Unblocked reports whether the same shards may have more, or another relay waits for one of them.
func (b *pageBatch) Unblocked() bool {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for _, p := range b.parts {
		if sh := p.shard; !sh.known || sh.leaving || sh.missed || len(sh.pages) > 0 || !sh.ended {
			return true
		}
	}
	return false
}

// Abandon gives back pages that were not settled. Their cursors are read again.
func (b *pageBatch) Abandon() {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for _, p := range b.parts {
		p.lose()
	}
}

// lose drops what is known of the shard, unless the page was settled before.
func (p *part) lose() {
	if p.settled {
		return
	}
	p.settled = true
	p.shard.out = false
	p.shard.forget()
}

// finish moves the shard in memory as the table was moved.
func (p *part) finish(changes int64) {
	if p.settled {
		return
	}
	sh, v := p.shard, &p.verdict
	p.settled = true
	sh.out = false
	if !sh.known {
		sh.pages = nil
		return
	}
	if sh.cursor.parked != changes {
		sh.cursor.parked, sh.stale = changes, true
	}
	for _, park := range v.parks {
		if key := p.page.messages[park.index].Key; park.gates && key != "" {
			sh.gated[strings.Clone(key)] = struct{}{} // without those that lie beside it
		}
	}
	if len(v.rest) > 0 {
		sh.cursor.pos = v.pos
		p.page.keep(v.rest)
		return
	}
	sh.pages = sh.pages[1:]
	if !p.page.closes {
		sh.cursor.pos = v.pos
		return
	}
	sh.cursor.closed()
}

// keep reduces the page to some of its events.
func (p *page) keep(rest []int) {
	messages, places := make([]outbox.Message, len(rest)), make([]place, len(rest))
	for i, from := range rest {
		messages[i], places[i] = p.messages[from], p.places[from]
	}
	p.messages, p.places = messages, places
}

// move runs the settle statement. It returns, for each shard that moved, how often others changed its parked events.
func (s *Store) move(ctx context.Context, parts []*part, parks *parkList) (moved map[int16]int64, err error) {
	// In the order of their numbers: see settings.
	parts = slices.SortedFunc(slices.Values(parts), func(a, b *part) int { return int(a.shard.number) - int(b.shard.number) })
	n := len(parts)
	numbers, fences, pos, s2, s1 := make([]int16, n), make([]int64, n), make([]int64, n), make([]string, n), make([]string, n)
	newPos, closes, names := make([]int64, n), make([]bool, n), make([]string, n)
	first, last := make([]int64, n), make([]int64, n)
	for i, p := range parts {
		numbers[i], fences[i], pos[i], s1[i], s2[i] = p.shard.number, p.fence, p.cursor.pos, p.cursor.s1, p.cursor.s2
		newPos[i], closes[i], names[i] = p.verdict.pos, p.verdict.closes, p.page.part
		first[i], last[i] = p.verdict.first, p.verdict.last
	}
	args := []any{
		s.config.Subscription, [16]byte(s.config.WorkerID), s.config.Lease.Seconds(),
		numbers, fences, pos, s2, newPos, closes, names, s1, first, last,
	}
	if len(parks.shards) == 0 {
		rows, _ := s.own.Query(ctx, s.sql.settle, args...)
		return s.collectMoved(rows)
	}
	// One round trip is one transaction. The second statement sees what the first one waited for, and makes due what
	// waits behind a key that was just freed.
	queue := &pgx.Batch{}
	queue.Queue(s.sql.settlePark, append(append(args, parks.args()...), parks.slots)...)
	shards, keys := parks.waiting()
	queue.Queue(s.sql.promote, s.config.Subscription, shards, keys)
	results := s.own.SendBatch(ctx, queue)
	rows, _ := results.Query()
	moved, err = s.collectMoved(rows)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return moved, err
}

// collectMoved reads a settle's answer. If relays came or went, the leases are tended at once.
func (s *Store) collectMoved(rows pgx.Rows) (map[int16]int64, error) {
	moved := make(map[int16]int64)
	var number int16
	var changes int64
	var relays int
	if _, err := pgx.ForEachRow(rows, []any{&number, &changes, &relays}, func() error {
		moved[number] = changes
		return nil
	}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(moved) > 0 && relays != s.relays {
		s.tendAt = time.Time{}
	}
	return moved, nil
}
