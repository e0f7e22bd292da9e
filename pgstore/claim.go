package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/layouts"
)

const (
	// fullScanShare limits scans without a watermark to about a tenth of the time: they become slow while an open
	// transaction keeps vacuum from cleaning up.
	fullScanShare = 10
	// slowScan is how long such a scan may take before it is limited at all.
	slowScan = 50 * time.Millisecond
	// quickLook is how long a look for expired leases may take to be part of every claim.
	quickLook = 5 * time.Millisecond
	// farShare is how many times in a lease a store looks for leases that end too far ahead.
	farShare = 10
)

// onTheFly plans a statement anew with its actual values. A prepared statement's plan, made
// while the table was small, would stay in use after it has grown.
const onTheFly = pgx.QueryExecModeCacheDescribe

// Claim takes due events.
func (s *Store) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	b, err := s.claim(ctx, &request)
	if err != nil {
		s.pool.Distrust(err)
		return nil, s.explain(err)
	}
	return b, nil
}

func (s *Store) claim(ctx context.Context, request *outbox.ClaimRequest) (*batch, error) {
	if s.layout.Locks() {
		return s.claimLocked(ctx, request)
	}
	n := request.Limit
	b := &batch{store: s}
	steps := []func(context.Context, *outbox.ClaimRequest, int) ([]claimed, error){b.claimDue}
	if s.layout.Hold == layouts.HoldLease {
		if first, last := s.lookForExpired(); first {
			steps = slices.Insert(steps, 0, b.claimExpired)
		} else if last {
			steps = append(steps, b.claimExpired)
		}
	}
	var rows []claimed
	for _, take := range steps {
		if len(rows) == n {
			break
		}
		taken, err := take(ctx, request, n-len(rows))
		if err != nil && len(rows) == 0 {
			return nil, err
		}
		// What was taken is ours: it is served even if the database failed just now.
		rows = append(rows, taken...)
	}
	s.mu.Lock()
	s.idle = len(rows) == 0
	s.mu.Unlock()
	if err := b.fill(ctx, rows); err != nil {
		return nil, err
	}
	return b, nil
}

// querier is a pool, or the transaction of a batch that is locked.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// claimDue claims due rows, from the watermark on or from the start.
//
// A row can become due, or be committed, below the watermark, if its transaction took long. Scans from the start find such
// rows. The store makes one whenever the last was quick, which is nearly always.
func (s *Store) claimDue(ctx context.Context, db querier, request *outbox.ClaimRequest, n int) ([]claimed, error) {
	s.mu.Lock()
	from := s.watermark
	rested := time.Since(s.fullAt) >= fullScanShare*s.fullTook
	slow := s.fullTook > s.slowScan
	s.mu.Unlock()
	if !from.IsZero() && !rested {
		rows, err := s.query(ctx, db, s.sql.claimDueFrom, request, n, from)
		if err != nil || len(rows) > 0 || slow {
			s.advance(rows)
			return rows, err
		}
		// Nothing above it. Before the store calls itself empty, it looks everywhere.
	}
	start := time.Now()
	rows, err := s.query(ctx, db, s.sql.claimDue, request, n)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.fullAt, s.fullTook = time.Now(), time.Since(start)
	s.mu.Unlock()
	s.advance(rows)
	return rows, nil
}

// advance moves the watermark to the last row claimed.
func (s *Store) advance(rows []claimed) {
	if len(rows) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watermark = rows[len(rows)-1].ordered.Time
}

func (b *batch) claimDue(ctx context.Context, request *outbox.ClaimRequest, n int) ([]claimed, error) {
	return b.store.claimDue(ctx, b.store.pool, request, n)
}

// claimExpired claims rows whose lease has run out.
func (b *batch) claimExpired(ctx context.Context, request *outbox.ClaimRequest, n int) ([]claimed, error) {
	s := b.store
	if s.lookForFar() {
		if err := s.endFarLeases(ctx); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	rows, err := s.query(ctx, s.pool, s.sql.claimExpired, request, n)
	s.mu.Lock()
	s.expiredAt, s.expiredTook = time.Now(), time.Since(start)
	s.mu.Unlock()
	for i := range rows {
		if !rows[i].exhausted {
			b.reclaimed++
		}
	}
	return rows, err
}

// lookForExpired says when a claim looks for expired leases: first, or last, if what is due does not fill it. Nearly always
// it is first: the look costs one probe at the head of an index, which finds nothing. If vacuum cannot do its work, the
// look has to pass rows that were settled long ago: a busy store then spends about a tenth of its time on such looks.
func (s *Store) lookForExpired() (first, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rested := time.Since(s.expiredAt) >= fullScanShare*s.expiredTook
	return rested || s.expiredTook <= quickLook, s.expiredTook <= s.slowScan
}

func (s *Store) lookForFar() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.farAt) < s.config.Lease/farShare {
		return false
	}
	s.farAt = time.Now()
	return true
}

// query runs a claim. While there is work, it sends the planner's settings in the same round trip and transaction. An idle
// poll for due rows is one statement: there is nothing to plan badly. A look for expired leases always sends them, because
// it searches everything that is held.
func (s *Store) query(
	ctx context.Context, db querier, kind claims, request *outbox.ClaimRequest, n int, args ...any,
) (list []claimed, err error) {
	statement, leaving := kind.of(request)
	args = append(append([]any{n}, args...), leaving...)
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	before := []string{sqlplan.ByIndex} // the claim reads its index in order, and finds rows again by ctid
	tx, locks := db.(*session)
	if locks {
		before, tx.begin = tx.begin, nil
	}
	var rows pgx.Rows
	if idle && !locks && kind != s.sql.claimExpired {
		rows, err = db.Query(ctx, statement.sql, statement.fresh(args...)...)
	} else {
		queue := &pgx.Batch{}
		for _, sql := range before {
			queue.Queue(sql)
		}
		queue.Queue(statement.sql, statement.with(args...)...)
		results := db.SendBatch(ctx, queue)
		defer func() {
			if closeErr := results.Close(); err == nil && closeErr != nil {
				list, err = nil, fmt.Errorf("outbox: claim from %s: %w", s.layout.Table, closeErr)
			}
		}()
		for range before {
			if _, err = results.Exec(); err != nil {
				break
			}
		}
		if err == nil {
			rows, err = results.Query()
		}
	}
	if err == nil {
		list, err = s.scan.collect(rows, n)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: claim from %s: %w", s.layout.Table, err)
	}
	return list, nil
}
