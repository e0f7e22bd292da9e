package pgstream

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

const (
	// pageBytes bounds what a page holds in memory, together with its limit.
	pageBytes = 4 << 20
	// minPage is the smallest limit of a page that large events lead to.
	minPage = 16
	// widePages is how many full pages a window has before the next one is expected to be long.
	widePages = 2
)

// The columns of a row that is read: shard, slot, seq, whether it is delayed, those of the event,
// and those of its window.
const (
	eventColumn  = 4
	windowColumn = eventColumn + 14
)

// room reports whether a page can be read: the shard keeps one in memory besides the one that is out.
func (sh *shard) room() bool {
	waiting := len(sh.pages)
	if sh.out {
		waiting--
	}
	return sh.known && !sh.ended && !sh.leaving && waiting < 1
}

// reading is what a read needs to know of a shard, as it was when the read began.
type reading struct {
	shard *shard
	from  int64
	cursor
}

// current reports whether the shard is still in the window that was read.
func (r *reading) current() bool { return r.shard.known && r.shard.cursor.s2 == r.s2 }

// readPages reads a page of every shard that has room: late parts one by one, main parts all at once.
func (s *Store) readPages(ctx context.Context, n int) error {
	s.mu.Lock()
	limit := s.limit(n)
	var late, main []*reading
	for _, sh := range s.sorted() {
		if !sh.room() {
			continue
		}
		r := &reading{shard: sh, from: sh.read, cursor: sh.cursor}
		if r.from < r.q1 {
			late = append(late, r)
		} else {
			main = append(main, r)
		}
	}
	s.mu.Unlock()
	for _, r := range late {
		found, err := s.readLate(ctx, r, limit)
		if err != nil {
			return err
		}
		if !found {
			r.from = r.q1
			main = append(main, r)
		}
	}
	if len(main) == 0 {
		return nil
	}
	return s.readMain(ctx, main, limit)
}

// readLate reads a page of the late part. It reports false if there is no more of it.
func (s *Store) readLate(ctx context.Context, r *reading, limit int) (found bool, err error) {
	number := r.shard.number
	args := append([]any{number, r.from, r.q1, r.s1, r.s2, limit}, s.sql.filterArgs...)
	pages, err := s.query(ctx, s.sql.late, args, limit, nil)
	if err != nil {
		return false, fmt.Errorf("outbox: read the late events of shard %d: %w", number, err)
	}
	p := pages[number]
	if p == nil {
		return false, nil
	}
	p.part, p.to = partLate, p.last()
	if !p.full {
		p.to = r.q1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.current() {
		r.shard.read = p.to
		r.shard.pages = append(r.shard.pages, p)
	}
	return true, nil
}

// readMain reads a page of the main part of every shard given.
func (s *Store) readMain(ctx context.Context, shards []*reading, limit int) error {
	slices.SortFunc(shards, func(a, b *reading) int { return int(a.shard.number) - int(b.shard.number) })
	numbers := make([]int16, len(shards))
	from, hi := make([]int64, len(shards)), make([]int64, len(shards))
	s1, s2 := make([]string, len(shards)), make([]string, len(shards))
	for i, r := range shards {
		numbers[i], from[i], hi[i], s1[i], s2[i] = r.shard.number, r.from, r.hi, r.s1, r.s2
	}
	args := append([]any{numbers, from, hi, snapshots(s1), snapshots(s2), limit}, s.sql.filterArgs...)
	pages, err := s.query(ctx, s.sql.main, args, limit, nil)
	if err != nil {
		return fmt.Errorf("outbox: read the stream: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range shards {
		if r.current() {
			r.shard.take(pages[r.shard.number])
		}
	}
	return nil
}

// take adds a page of the main part; nil is an empty one.
func (sh *shard) take(p *page) {
	if p == nil {
		p = &page{}
	}
	p.part = partMain
	if p.full {
		p.to = p.last()
		sh.read = p.to
		sh.full++
	} else {
		p.closes = true
		sh.ended = true
		sh.wide = sh.full >= widePages
		sh.full = 0
	}
	sh.pages = append(sh.pages, p)
}

// snapshots writes snapshots as an array for a text parameter. They consist of digits, colons and commas.
func snapshots(list []string) string {
	return `{"` + strings.Join(list, `","`) + `"}`
}

// query runs a statement of the reader and collects the pages by shard. A page is full if there may be more: it has as
// many events as were asked for, or too many bytes. If two events have one number, the stream is refused.
//
// A statement that opens windows has their columns behind those of the event, for opened. It also has a row for a window
// without events.
func (s *Store) query(
	ctx context.Context, sql string, args []any, limit int, opened func(number int16, window [][]byte),
) (map[int16]*page, error) {
	rows, _ := s.reader.conn.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	defer rows.Close()
	pages := make(map[int16]*page)
	var current *page
	var number int16
	size, cut := 0, 0
	seq, twice := int64(0), false
	for rows.Next() {
		values := rows.RawValues()
		if opened != nil {
			opened(int16Of(values[0]), values[windowColumn:])
			if values[2] == nil {
				continue
			}
		}
		if shard := int16Of(values[0]); current == nil || shard != number {
			current, number, size = s.reader.newPage(limit), shard, 0
			pages[number] = current
			seq = 0
		}
		twice = twice || int64Of(values[2]) == seq
		seq = int64Of(values[2])
		if size > pageBytes {
			cut = max(cut, len(current.places))
			current.full = true
			continue
		}
		message := s.reader.rows.message(values[eventColumn:windowColumn], s.config.MaxAttempts)
		message.Attempt = 1
		size += len(values[12]) + len(values[14]) // headers and payload
		current.messages = append(current.messages, message)
		where := place{slot: int16Of(values[1]), seq: seq, delayed: boolOf(values[3])}
		current.places = append(current.places, where)
		current.delayed = current.delayed || where.delayed
		current.full = len(current.places) == limit
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if twice {
		return nil, s.stream.refuseTwice(ctx, s.reader.conn)
	}
	s.reader.last = 0
	if current != nil {
		s.reader.last = len(current.places)
	}
	s.fitPages(cut, limit)
	return pages, nil
}

// limit is how many events a page may have when n are asked for.
func (s *Store) limit(n int) int {
	if s.pageLimit > 0 {
		return min(n, s.pageLimit)
	}
	return n
}

// window is one that was opened.
type window struct {
	s2     string
	q2, hi int64
	xid    uint64 // of the statement that opened it
	// punctual is set when it has no late part: its first page came with it.
	punctual bool
}

// newPage makes room for as many events as the last page had: full pages, and nearly empty ones, come in a row.
func (r *reader) newPage(limit int) *page {
	room := min(limit, r.last)
	return &page{messages: make([]outbox.Message, 0, room), places: make([]place, 0, room)}
}

// fitPages makes pages smaller when one was cut short, and larger again when none was.
func (s *Store) fitPages(cut, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case cut > 0:
		s.pageLimit = max(minPage, min(cut, limit))
	case s.pageLimit > 0:
		s.pageLimit *= 2
		if s.pageLimit > 1<<20 {
			s.pageLimit = 0
		}
	}
}

// openWindows opens a window in every shard that has none open, if there may be something in it, and reads its first
// page. An idle relay polls with it: if there is nothing, it writes nothing.
func (s *Store) openWindows(ctx context.Context, n int) (opened bool, err error) {
	var between, wide []*shard
	late := false
	s.mu.Lock()
	limit := s.limit(n)
	for _, sh := range s.sorted() {
		sh.missed = sh.out
		if !sh.known || sh.leaving || sh.out || sh.cursor.s2 != "" || len(sh.pages) > 0 {
			continue
		}
		between = append(between, sh)
		late = late || sh.cursor.mayBeLate()
		if sh.wide {
			wide = append(wide, sh)
			sh.cursor.hixid = 0 // the refresh reads the sequence again, and does not say its xid
		}
	}
	s.mu.Unlock()
	if len(between) == 0 {
		return false, nil
	}
	if len(wide) > 0 {
		numbers, fences := fenced(wide)
		// A window whose hi is fresh is not walked again by the next one.
		if _, err := s.reader.conn.Exec(ctx, s.sql.refresh, s.config.Subscription, numbers, fences); err != nil {
			return false, fmt.Errorf("outbox: refresh cursors: %w", err)
		}
		// Much may have been written since its last one: that is walked once for all shards.
		if err := s.checkShards(ctx, wide); err != nil {
			return false, err
		}
	}
	open := s.sql.openPunctual
	if late {
		open = s.sql.open
	}
	numbers, fences := fenced(between)
	windows := make(map[int16]window)
	args := append([]any{s.config.Subscription, numbers, fences, limit, s.marks(between)}, s.sql.filterArgs...)
	pages, err := s.query(ctx, open, args, limit, func(number int16, columns [][]byte) {
		if _, known := windows[number]; !known {
			windows[number] = window{
				s2: string(columns[0]), q2: int64Of(columns[1]), hi: int64Of(columns[2]),
				xid: uint64(int64Of(columns[3])), punctual: boolOf(columns[4]),
			}
		}
	})
	if err == nil && len(windows) > 0 {
		err = s.stillThere(ctx, between)
	}
	if err != nil {
		return false, fmt.Errorf("outbox: open windows: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, w := range windows {
		sh := s.shards[number]
		if sh == nil {
			continue // lost meanwhile
		}
		sh.cursor.opened(w)
		sh.wide = false
		sh.begin()
		if w.punctual {
			sh.read = sh.cursor.q1
			sh.take(pages[number])
		}
		opened = true
	}
	return opened, nil
}
