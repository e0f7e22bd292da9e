package pgstream

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	// pageBytes bounds what a page holds in memory, together with its limit.
	pageBytes = 4 << 20
	// minPage is the smallest limit of a page that large events lead to.
	minPage = 16
	// widePages is how many full pages a window has before the next one is expected to be long.
	widePages = 2
)

// hasRoom reports whether a shard could be read ahead.
func (s *Store) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.room() {
			return true
		}
	}
	return false
}

// room reports whether a page can be read: there is one page in memory besides the one that
// is out.
func (sh *shard) room() bool {
	waiting := len(sh.pages)
	if sh.out {
		waiting--
	}
	return sh.known && !sh.ended && !sh.leaving && waiting < 1
}

// readPages reads a page of every shard that has room: of the late part one shard after the
// other, of the main part all at once.
func (s *Store) readPages(ctx context.Context, n int) error {
	limit := n
	s.mu.Lock()
	if s.pageLimit > 0 {
		limit = min(n, s.pageLimit)
	}
	var late, main []*shard
	for _, sh := range s.sorted() {
		switch {
		case !sh.room():
		case sh.read < sh.cursor.q1:
			late = append(late, sh)
		default:
			main = append(main, sh)
		}
	}
	s.mu.Unlock()
	for _, sh := range late {
		found, err := s.readLate(ctx, sh, limit)
		if err != nil {
			return err
		}
		if !found {
			main = append(main, sh)
		}
	}
	if len(main) == 0 {
		return nil
	}
	return s.readMain(ctx, main, limit)
}

// readLate reads a page of the late part. It reports false when that part is empty, or has
// been read already.
func (s *Store) readLate(ctx context.Context, sh *shard, limit int) (found bool, err error) {
	c := sh.cursor
	args := append([]any{sh.number, sh.read, c.q1, c.s1, c.s2, limit}, s.sql.filterArgs...)
	pages, err := s.query(ctx, s.sql.late, args, limit)
	if err != nil {
		return false, fmt.Errorf("outbox: read the late events of shard %d: %w", sh.number, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sh.known || sh.cursor.s2 != c.s2 {
		return true, nil // it changed hands meanwhile
	}
	p := pages[sh.number]
	if p == nil {
		sh.read = c.q1
		return false, nil
	}
	p.part, p.to = partLate, p.last()
	if !p.full {
		p.to = c.q1
	}
	sh.read = p.to
	sh.pages = append(sh.pages, p)
	return true, nil
}

// readMain reads a page of the main part of every shard given.
func (s *Store) readMain(ctx context.Context, shards []*shard, limit int) error {
	slices.SortFunc(shards, func(a, b *shard) int { return int(a.number) - int(b.number) })
	numbers := make([]int16, len(shards))
	pos, hi := make([]int64, len(shards)), make([]int64, len(shards))
	s1, s2 := make([]string, len(shards)), make([]string, len(shards))
	for i, sh := range shards {
		numbers[i], pos[i], hi[i], s1[i], s2[i] = sh.number, sh.read, sh.cursor.hi, sh.cursor.s1, sh.cursor.s2
	}
	args := append([]any{numbers, pos, hi, snapshots(s1), snapshots(s2), limit}, s.sql.filterArgs...)
	pages, err := s.query(ctx, s.sql.main, args, limit)
	if err != nil {
		return fmt.Errorf("outbox: read the stream: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, sh := range shards {
		if !sh.known || sh.cursor.s2 != s2[i] {
			continue // it changed hands meanwhile
		}
		p := pages[sh.number]
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
	return nil
}

// snapshots writes snapshots as an array for a text parameter. Each is made of digits,
// colons and commas.
func snapshots(list []string) string {
	return `{"` + strings.Join(list, `","`) + `"}`
}

// query runs a statement of the reader and collects the pages by shard. A page is full when
// there may be more: it has as many events as were asked for, or too many bytes.
func (s *Store) query(ctx context.Context, sql string, args []any, limit int) (map[int16]*page, error) {
	rows, err := s.reader.conn.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	pages := make(map[int16]*page)
	var current *page
	var number int16
	size, cut := 0, 0
	for rows.Next() {
		values := rows.RawValues()
		if shard := int16Of(values[0]); current == nil || shard != number {
			current, number, size = &page{}, shard, 0
			pages[number] = current
		}
		if size > pageBytes {
			cut = max(cut, len(current.places))
			current.full = true
			continue
		}
		message, err := s.reader.rows.message(values[4:], s.config.MaxAttempts)
		if err != nil {
			return nil, err
		}
		message.Attempt = 1
		size += len(values[12]) + len(values[14]) // headers and payload
		current.messages = append(current.messages, message)
		current.places = append(current.places, place{slot: int16Of(values[1]), seq: int64Of(values[2]), delayed: boolOf(values[3])})
		current.full = len(current.places) == limit
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	s.fitPages(cut, limit)
	return pages, nil
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

// openWindows opens a window in every shard that is between two, if there may be something in
// it. It is what an idle relay polls with: if there is not, it writes nothing.
func (s *Store) openWindows(ctx context.Context) (opened bool, err error) {
	var numbers, wide []int16
	var fences, wideFences []int64
	s.mu.Lock()
	for _, sh := range s.sorted() {
		if !sh.known || sh.leaving || sh.out || sh.cursor.s2 != "" || len(sh.pages) > 0 {
			continue
		}
		numbers, fences = append(numbers, sh.number), append(fences, sh.fence)
		if sh.wide {
			wide, wideFences = append(wide, sh.number), append(wideFences, sh.fence)
		}
	}
	s.mu.Unlock()
	if len(numbers) == 0 {
		return false, nil
	}
	if len(wide) > 0 {
		// A window whose hi is fresh is not walked again by the next one.
		if _, err := s.reader.conn.Exec(ctx, s.sql.refresh, s.config.Subscription, wide, wideFences); err != nil {
			return false, fmt.Errorf("outbox: refresh cursors: %w", err)
		}
	}
	rows, err := s.reader.conn.Query(ctx, s.sql.open, s.config.Subscription, numbers, fences)
	if err != nil {
		return false, fmt.Errorf("outbox: open windows: %w", err)
	}
	var number int16
	var s2 string
	var q2, hi int64
	_, err = pgx.ForEachRow(rows, []any{&number, &s2, &q2, &hi}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		sh := s.shards[number]
		if sh == nil {
			return nil // lost meanwhile
		}
		sh.cursor.s2, sh.cursor.q2, sh.cursor.hi, sh.cursor.pos = s2, q2, hi, 0
		sh.wide = false
		sh.begin()
		opened = true
		return nil
	})
	if err != nil {
		return opened, fmt.Errorf("outbox: open windows: %w", err)
	}
	return opened, nil
}
